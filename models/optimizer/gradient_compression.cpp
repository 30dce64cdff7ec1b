#include "starling/models/optimizer/gradient_compression.hpp"

#include "starling/base/check.hpp"
#include "starling/models/optimizer/threshold_element.hpp"

namespace starling::models {

SparseGradient compress(const Threshold& how, std::span<const float> g, std::span<float> residual) {
  STARLING_CHECK(is_valid(how) && g.size() == residual.size() && g.size() <= threshold_size_max);
  SparseGradient sent;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float whole = residual[i] += g[i];
    if (!is_sent(how, whole)) continue;
    residual[i] = left_value(how, whole);
    sent.indices.push_back(sent_index(how, static_cast<std::uint32_t>(i), whole));
    if (how.form == Threshold::Form::values) sent.values.push_back(sent_value(how, whole));
  }
  return sent;
}

void expand(const Threshold& how, const SparseGradient& sent, std::span<float> g) {
  const bool signs = how.form == Threshold::Form::signs;
  for (std::size_t k = 0; k < sent.indices.size(); ++k) {
    const std::uint32_t index = sent.indices[k];
    const std::uint32_t i = signs ? index & ~sign_bit : index;
    STARLING_CHECK(i < g.size());
    const float size = (index & sign_bit) != 0 ? -how.threshold : how.threshold;
    g[i] += signs ? size : sent.values[k];
  }
}

}  // namespace starling::models
