/// Internal: one maker function for each kind of layer; layers.cpp lists them. A maker reads the
/// layer's options and makes the layer. If an option or the shape of the input is bad, it records
/// the error in `reader`, and returns null if no layer can be made without that value. So the
/// caller must check SpecReader::finish() before it uses the layer.
#pragma once

#include <cstdint>
#include <string>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/models/net/layers/layer.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// The largest number of outputs, channels or ids, of numbers in an embedding's vector, and of
/// pixels in a shift. The bounds extent_max, side_max and volume_max ensure that no product of
/// extents overflows, except the number of a convolution's weights, which make_conv2d() limits
/// itself.
inline constexpr std::uint64_t extent_max = std::uint64_t{1} << 24U;
/// The largest side of a window, stride and padding, in pixels.
inline constexpr std::uint64_t side_max = 4096;

template <class T>
LayerPointer<T> make_conv2d(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_max_pool(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_avg_pool(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_global_avg_pool(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_dense(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_embedding(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_flatten(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_batch_norm(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_dropout(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_random_flip(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_random_shift(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_relu(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_tanh(SpecReader& reader, const Shape& input);
template <class T>
LayerPointer<T> make_gelu(SpecReader& reader, const Shape& input);

/// Reads the next positional option, a number from 1 to `max`. Records an error and returns 0 if it
/// is missing or bad. `noun` names the number in errors: "its outputs".
inline std::size_t read_size(SpecReader& reader, const std::string& noun,
                             std::uint64_t max = extent_max) {
  const std::string text = reader.positional();
  const auto value = parse_count(text);
  if (value && *value > 0 && *value <= max) return *value;
  reader.refuse(text.empty() ? "needs " + noun + ", a whole number after its name"
                             : quote(text) + " must be " + noun + ", a whole number from 1 to " +
                                   std::to_string(max));
  return 0;
}

/// Returns true if the input is an image; records an error if not.
inline bool check_image(SpecReader& reader, const Shape& input) {
  if (input.size() == 3) return true;
  reader.refuse("reads images, HEIGHTxWIDTHxCHANNELS, but its input is " + print_shape(input));
  return false;
}

/// Returns true if the input is a row; records an error if not.
inline bool check_row(SpecReader& reader, const Shape& input) {
  if (input.size() == 1) return true;
  reader.refuse("reads rows of numbers, but its input is " + print_shape(input) +
                "; put flatten before it, which gives it rows of " + std::to_string(volume(input)) +
                " numbers");
  return false;
}

/// Returns true if a window of size x size fits into the padded input; records an error if not.
inline bool check_window(SpecReader& reader, const Shape& input, std::size_t size,
                         std::size_t padding) {
  if (size <= std::min(input[0], input[1]) + 2 * padding) return true;
  const std::string window = std::to_string(size) + "x" + std::to_string(size);
  reader.refuse("its window of " + window + " is larger than its input " + print_shape(input) +
                (padding > 0 ? " with padding " + std::to_string(padding) : ""));
  return false;
}

}  // namespace starling::models
