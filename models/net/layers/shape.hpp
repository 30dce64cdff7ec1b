/// The shape of one sample, as input or output of a layer. Plain values; thread-safe to read.
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

/// The largest volume of the input and of each layer's output: 64 MiB of floats for one sample.
inline constexpr std::size_t volume_max = std::size_t{1} << 24U;

/// Returns the number of elements of one sample: the product of the extents.
[[nodiscard]] std::size_t volume(const Shape& shape);

/// Prints the extents: "28x28x1".
[[nodiscard]] std::string print_shape(const Shape& shape);

/// Reads the text that print_shape writes: one to three extents, each at least 1, of a volume of at
/// most volume_max.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text);

/// Refuses a layer's `output` for one sample of shape `input` if its volume is above volume_max.
[[nodiscard]] Result<void> check_output(const Shape& input, const Shape& output);

/// Guesses the shape of an image from its number of features: a square image of one channel for a
/// square number, a square image of three channels for three times a square number, else an empty
/// shape. No number is both.
[[nodiscard]] Shape guess_image(std::size_t features);

}  // namespace starling::models
