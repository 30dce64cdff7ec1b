/// Threshold compression of gradients: an element is sent only when the absolute value of its
/// accumulated gradient exceeds a threshold t. Until then the residual keeps the accumulated
/// gradient, so that no gradient is lost, only delayed. For each element, with the residual r and
/// the gradient g:
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

/// The options of threshold compression.
struct Threshold {
  /// values: an element is sent as a float; signs: an element is sent as its sign, one bit.
  enum class Form { values, signs };
  /// At least 0; for the form `signs`, above 0.
  float threshold = 0;
  Form form = Form::values;
};

/// Returns true if the threshold is in the form's range. With the form `signs` and threshold 0,
/// every value sent would be 0.
[[nodiscard]] constexpr bool is_valid(const Threshold& options) {
  return options.threshold > 0 ||
         (options.threshold == 0 && options.form == Threshold::Form::values);
}

/// The elements that a worker sends.
struct SparseGradient {
  /// Ascending. In the form `signs` the top bit of an index is set if the element is negative.
  std::vector<std::uint32_t> indices;
  /// One value for each index; empty in the form `signs`, where every value is the threshold.
  std::vector<float> values;
  bool operator==(const SparseGradient&) const = default;
};

/// The largest number of elements of a gradient: an index has 31 bits beside the sign bit.
inline constexpr std::size_t threshold_size_max = std::size_t{1} << 31U;

/// Adds g to the residual, removes the elements to send from it and returns them. NaN stays in the
/// residual.
/// Requires: is_valid(options); equal sizes, at most threshold_size_max.
[[nodiscard]] SparseGradient compress(const Threshold& options, std::span<const float> g,
                                      std::span<float> residual);

/// Adds the values of the sent elements to g. Requires: indices within g.
void expand(const Threshold& options, const SparseGradient& sent, std::span<float> g);

}  // namespace starling::models
