/// Internal: kernel bodies for images [height x width x channels]: pooling, random shifts,
/// mirroring.
#pragma once

#include <cstdint>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/cuda/kernels/philox.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// An interval of rows or columns, without `end`.
struct Interval {
  Index begin;
  Index end;
};

/// The coordinates of element i of a tensor of images [images x height x width x channels].
struct Position {
  Index image, row, column, channel;
  STARLING_HOST_DEVICE Position(Index i, Index height, Index width, Index channels)
      : channel(i % channels) {
    Index rest = i / channels;
    column = rest % width;
    rest /= width;
    row = rest % height;
    image = rest / height;
  }
};

/// Returns the index of the element at `row` and `column` of the image and channel of `position`.
STARLING_HOST_DEVICE inline Index index_at(const Position& position, Index row, Index column,
                                           Index height, Index width, Index channels) {
  return ((position.image * height + row) * width + column) * channels + position.channel;
}

/// A PoolShape (models/net/layers/layer_specification.hpp) whose sizes have the type Index.
struct Pooling {
  Index height, width, channels, size, stride, padding, out_height, out_width;

  /// Returns the rows that window number `window` covers, of an image with `extent` rows. The same
  /// for columns.
  STARLING_HOST_DEVICE Interval pixels_in_window(Index window, Index extent) const {
    const Index start = window * stride;
    const Index end = start + size - padding;
    return {start < padding ? 0 : start - padding, end < extent ? end : extent};
  }
  /// Returns the numbers of the windows that cover row `pixel`, if there are `windows` windows in
  /// this direction. The same for columns.
  STARLING_HOST_DEVICE Interval windows_over_pixel(Index pixel, Index windows) const {
    const Index end = (pixel + padding) / stride + 1;
    const Index padded_end = pixel + padding + 1;
    const Index first = padded_end <= size ? 0 : (padded_end - size + stride - 1) / stride;
    return {first, end < windows ? end : windows};
  }
  /// Returns the index of an element of the input.
  STARLING_HOST_DEVICE Index input_index(const Position& position, Index row, Index column) const {
    return index_at(position, row, column, height, width, channels);
  }
  /// Returns the index of an element of the output.
  STARLING_HOST_DEVICE Index output_index(const Position& position, Index row, Index column) const {
    return index_at(position, row, column, out_height, out_width, channels);
  }
};

/// Called for each element of y: finds the largest element of a window and its index in x. If
/// several are equal, takes the one in the leftmost column and there the uppermost, as the CPU
/// does.
struct MaxPool {
  Pooling p;
  const float* x;
  float* y;
  Index* indices;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position position{i, p.out_height, p.out_width, p.channels};
    const Interval rows = p.pixels_in_window(position.row, p.height);
    const Interval columns = p.pixels_in_window(position.column, p.width);
    Index best = p.input_index(position, rows.begin, columns.begin);
    for (Index s = columns.begin; s < columns.end; ++s) {
      Index best_row = p.input_index(position, rows.begin, s);
      for (Index r = rows.begin + 1; r < rows.end; ++r)
        if (x[p.input_index(position, r, s)] > x[best_row])
          best_row = p.input_index(position, r, s);
      if (s == columns.begin || x[best_row] > x[best]) best = best_row;
    }
    y[i] = x[best];
    indices[i] = best;
  }
};

/// Called for each element of dx: adds dy of all windows whose largest element it is, in a fixed
/// order.
struct MaxPoolBackward {
  Pooling p;
  const Index* indices;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position position{i, p.height, p.width, p.channels};
    const Interval rows = p.windows_over_pixel(position.row, p.out_height);
    const Interval columns = p.windows_over_pixel(position.column, p.out_width);
    float sum = 0;
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index s = columns.begin; s < columns.end; ++s) {
        const Index window = p.output_index(position, r, s);
        if (indices[window] == i) sum += dy[window];
      }
    dx[i] = sum;
  }
};

/// Called for each element of y: computes the mean of the window's pixels that are within the
/// image.
struct AvgPool {
  Pooling p;
  const float* x;
  float* y;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position position{i, p.out_height, p.out_width, p.channels};
    const Interval rows = p.pixels_in_window(position.row, p.height);
    const Interval columns = p.pixels_in_window(position.column, p.width);
    const float share =
        1 / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
    float sum = 0;
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index s = columns.begin; s < columns.end; ++s)
        sum += share * x[p.input_index(position, r, s)];
    y[i] = sum;
  }
};

/// Called for each element of dx.
struct AvgPoolBackward {
  Pooling p;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position position{i, p.height, p.width, p.channels};
    const Interval rows = p.windows_over_pixel(position.row, p.out_height);
    const Interval columns = p.windows_over_pixel(position.column, p.out_width);
    float sum = 0;
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index s = columns.begin; s < columns.end; ++s) {
        const Interval height = p.pixels_in_window(r, p.height);
        const Interval width = p.pixels_in_window(s, p.width);
        const float share =
            1 / static_cast<float>((height.end - height.begin) * (width.end - width.begin));
        sum += share * dy[p.output_index(position, r, s)];
      }
    dx[i] = sum;
  }
};

/// Called for each element of y [n x channels]: computes the mean of a channel of x [n x pixels x
/// channels].
struct GlobalAvgPool {
  const float* x;
  float* y;
  Index pixels, channels;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index first = i / channels * pixels * channels + i % channels;
    constexpr Index pixels_in_sum = 4096;  // net/layers/pool.cpp says why
    float sum = 0;
    for (Index k = 0; k < pixels;) {
      const Index end = pixels - k < pixels_in_sum ? pixels : k + pixels_in_sum;
      float partial = 0;
      for (; k < end; ++k) partial += x[first + k * channels];
      sum += partial;
    }
    y[i] = sum / static_cast<float>(pixels);
  }
};

/// Called for each element of dx.
struct GlobalAvgPoolBackward {
  const float* dy;
  float* dx;
  Index pixels, channels;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index image = i / (pixels * channels);
    dx[i] = dy[image * channels + i % channels] / static_cast<float>(pixels);
  }
};

/// Called for each element of y. Mirrors the image left to right with probability 1/2, or shifts it
/// by a random number of rows and columns from -shift_max to shift_max. The random number is the
/// same for all pixels of an image. A pixel that comes from outside the image is 0. In the backward
/// pass, called for each element of dx, x is dy and y is dx, and the shift is reversed.
struct Augment {
  const float* x;
  float* y;
  Index height, width, channels;
  /// The largest shift; 0 to mirror each image with probability 1/2 instead.
  Index shift_max;
  bool is_backward;
  Draws draws;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position position{i, height, width, channels};
    const std::uint32_t bits = draws.at(position.image).word[0];
    Index row = position.row;
    Index column = position.column;
    if (shift_max == 0) {
      if (below(bits, 2) == 1) column = width - 1 - column;
    } else {
      const Index shifts = 2 * shift_max + 1;
      const Index drawn = below(bits, shifts * shifts);
      // Beyond the upper or left border the unsigned difference wraps around to a large number,
      // which is outside the image too.
      row = is_backward ? row + shift_max - drawn / shifts : row + drawn / shifts - shift_max;
      column =
          is_backward ? column + shift_max - drawn % shifts : column + drawn % shifts - shift_max;
    }
    const bool is_inside = row < height && column < width;
    y[i] = is_inside ? x[index_at(position, row, column, height, width, channels)] : 0;
  }
};

}  // namespace starling::models::cuda
