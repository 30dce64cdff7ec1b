/// The shape of one sample, as input or output of a layer. Plain values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::models {

/// Extents, outermost first; tensors are row-major in memory:
/// - {n}: a row of n numbers;
/// - {length, width}: a sequence;
/// - {height, width, channels}: an image, its channels last.
using Shape = std::vector<std::size_t>;

/// The most numbers that one sample may have at any point of a net, 64 MiB of floats.
inline constexpr std::size_t volume_max = std::size_t{1} << 24U;

/// Returns how many numbers one sample has.
[[nodiscard]] std::size_t volume(const Shape& shape);

/// Prints the extents: "28x28x1".
[[nodiscard]] std::string print_shape(const Shape& shape);

/// Reads text that print_shape wrote: one to three extents, each at least 1.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text);

/// Guesses the shape of an image from its number of features: a square number is a square image of
/// one channel, three times a square number is one of three channels; otherwise the result is
/// empty. No number is both.
[[nodiscard]] Shape guess_image(std::size_t features);

}  // namespace starling::models
