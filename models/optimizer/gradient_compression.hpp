/// Threshold compression of gradients (compressions/threshold.hpp) to indices and values, which
/// devices compute too. Plain values and functions; any thread may call them on memory of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "starling/models/optimizer/compressions/threshold.hpp"

namespace starling::models {

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
