/// Threshold compression of gradients with a residual: an element is sent once its accumulated
/// gradient exceeds a threshold t, and stays in the residual until then, so that no gradient is
/// lost, only delayed. Per element, with the residual r and gradient g:
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
  /// At least 0; for the form `signs`, above 0.
  float threshold = 0;
  Form form = Form::values;
};

/// False for the form `signs` with threshold 0, which would never send anything of an element.
[[nodiscard]] constexpr bool is_valid(const Threshold& how) {
  return how.threshold > 0 || (how.threshold == 0 && how.form == Threshold::Form::values);
}

/// The elements that a worker sends.
struct SparseGradient {
  /// Ascending. In the form `signs` an index has its top bit set where the element is negative.
  std::vector<std::uint32_t> indices;
  /// One value for each index; empty in the form `signs`, where every value is the threshold.
  std::vector<float> values;
  bool operator==(const SparseGradient&) const = default;
};

/// The largest number of elements that an index can address.
inline constexpr std::size_t threshold_size_max = std::size_t{1} << 31U;

/// Adds g to the residual and takes the sent elements out of it. NaN stays in the residual.
/// Requires: is_valid(how); equal sizes, at most threshold_size_max.
[[nodiscard]] SparseGradient compress(const Threshold& how, std::span<const float> g,
                                      std::span<float> residual);

/// Adds the sent elements to g. Requires: indices within g.
void expand(const Threshold& how, const SparseGradient& sent, std::span<float> g);

}  // namespace starling::models
