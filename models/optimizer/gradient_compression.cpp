#include "starling/models/optimizer/gradient_compression.hpp"

#include "starling/base/check.hpp"
#include "starling/models/optimizer/threshold_element.hpp"

namespace starling::models {

SparseGradient compress(const Threshold& options, std::span<const float> g,
                        std::span<float> residual) {
  STARLING_CHECK(is_valid(options) && g.size() == residual.size() &&
                 g.size() <= threshold_size_max);
  SparseGradient sent;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const float sum = residual[i] += g[i];
    if (!is_sent(options, sum)) continue;
    residual[i] = kept_value(options, sum);
    sent.indices.push_back(sent_index(options, static_cast<std::uint32_t>(i), sum));
    if (options.form == Threshold::Form::values) sent.values.push_back(sent_value(options, sum));
  }
  return sent;
}

void expand(const Threshold& options, const SparseGradient& sent, std::span<float> g) {
  const bool has_signs = options.form == Threshold::Form::signs;
  for (std::size_t k = 0; k < sent.indices.size(); ++k) {
    const std::uint32_t index = sent.indices[k];
    const std::uint32_t i = has_signs ? index & ~sign_bit : index;
    STARLING_CHECK(i < g.size());
    const float signed_threshold = (index & sign_bit) != 0 ? -options.threshold : options.threshold;
    g[i] += has_signs ? signed_threshold : sent.values[k];
  }
}

}  // namespace starling::models
