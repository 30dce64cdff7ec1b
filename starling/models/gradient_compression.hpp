/// Threshold compression of gradients with a residual: an element is sent once what has gathered of
/// it exceeds a threshold t, and stays in the residual until then, so that nothing is lost, only
/// late. Per element, with the residual r and gradient g:
///
///     r += g;  |r| <= t: nothing is sent
///     values:  r is sent, r = 0                       (Aji, Heafield, EMNLP 2017, algorithm 1)
///     signs:   t sign(r) is sent, r -= t sign(r)      (Strom, Interspeech 2015, section 3)
///
/// Plain values and functions; any thread may call them on memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::models {

struct Threshold {
  enum class Form { values, signs };
  /// At least 0; of the form `signs` above it.
  float threshold = 0;
  Form form = Form::values;
};

/// With no threshold, signs would send nothing of each element for ever.
[[nodiscard]] constexpr bool is_valid(const Threshold& how) {
  return how.threshold > 0 || (how.threshold == 0 && how.form == Threshold::Form::values);
}

/// What is sent.
struct SparseGradient {
  /// Ascending. Of the form `signs` with the top bit set where the element is negative.
  std::vector<std::uint32_t> indices;
  /// One an index; of the form `signs` none, for all are the threshold.
  std::vector<float> values;
  bool operator==(const SparseGradient&) const = default;
};

/// Elements that an index can name.
inline constexpr std::size_t threshold_size_max = std::size_t{1} << 31U;

/// Adds g to the residual and takes out what is sent. What is no number stays.
/// Requires: is_valid(how); equal sizes, at most threshold_size_max.
[[nodiscard]] SparseGradient compress(const Threshold& how, std::span<const float> g,
                                      std::span<float> residual);

/// Adds what was sent to g. Requires: indices within g.
void expand(const Threshold& how, const SparseGradient& sent, std::span<float> g);

}  // namespace starling::models
