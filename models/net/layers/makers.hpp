/// Internal: one maker for each layer, named once in layers.cpp. A maker reads the layer's options,
/// refuses inputs of a shape that does not fit, and returns null where it refuses.
#pragma once

#include <cstdint>
#include <string>

#include "starling/base/spec.hpp"
#include "starling/base/text.hpp"
#include "starling/models/net/layers/layer.hpp"
#include "starling/models/net/layers/shape.hpp"

namespace starling::models {

/// The largest number of outputs, channels and ids. With these bounds and volume_max no product of
/// extents overflows.
inline constexpr std::uint64_t extent_max = std::uint64_t{1} << 24U;
/// The largest window, stride and padding.
inline constexpr std::uint64_t side_max = 4096;

template <class T>
LayerPointer<T> make_conv2d(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_max_pool(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_avg_pool(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_global_avg_pool(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_dense(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_embedding(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_flatten(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_batch_norm(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_dropout(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_random_flip(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_random_shift(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_relu(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_tanh(SpecReader& read, const Shape& input);
template <class T>
LayerPointer<T> make_gelu(SpecReader& read, const Shape& input);

/// Reads the number behind a layer's name, from 1 to `max`; returns 0 where it refuses. `what`
/// names the quantity in errors.
inline std::size_t read_size(SpecReader& read, const std::string& what,
                             std::uint64_t max = extent_max) {
  const std::string text = read.positional();
  const auto value = parse_count(text);
  if (value && *value > 0 && *value <= max) return *value;
  read.refuse(text.empty() ? "needs " + what + ", a whole number behind its name"
                           : shown(text) + " must be " + what + ", a whole number from 1 to " +
                                 std::to_string(max));
  return 0;
}

/// Refuses an input that is not an image, and then returns false.
inline bool check_image(SpecReader& read, const Shape& input) {
  if (input.size() == 3) return true;
  read.refuse("reads images, HEIGHTxWIDTHxCHANNELS, but its input is " + print_shape(input));
  return false;
}

/// Refuses an input that is not a row, and then returns false.
inline bool check_row(SpecReader& read, const Shape& input) {
  if (input.size() == 1) return true;
  read.refuse("reads rows of numbers, but its input is " + print_shape(input) +
              "; put flatten in between, which makes it " + std::to_string(volume(input)));
  return false;
}

/// Refuses a window of size x size that does not fit into the padded input, and then returns false.
inline bool check_window(SpecReader& read, const Shape& input, std::size_t size,
                         std::size_t padding) {
  if (size <= std::min(input[0], input[1]) + 2 * padding) return true;
  const std::string window = std::to_string(size) + "x" + std::to_string(size);
  read.refuse("its window of " + window + " is larger than its input " + print_shape(input) +
              (padding > 0 ? " with padding " + std::to_string(padding) : ""));
  return false;
}

}  // namespace starling::models
