/// Internal: kernel bodies for images with channels last: pooling, random shifts and mirroring.
#pragma once

#include <cstdint>

#include "starling/models/cuda/kernels/host_device.hpp"
#include "starling/models/cuda/kernels/philox.hpp"

namespace starling::models::cuda {

/// A range of rows or columns; `to` is not part of it.
struct Span {
  Index from;
  Index to;
};

/// The coordinates of number i of images [height x width x channels].
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

/// Returns the index of the number at another row and column of the same image and channel.
STARLING_HOST_DEVICE inline Index index_at(const Position& position, Index row, Index column,
                                           Index height, Index width, Index channels) {
  return ((position.image * height + row) * width + column) * channels + position.channel;
}

/// The numbers of a PoolShape (models/net/layers/layer_specification.hpp) as Index.
struct Pooling {
  Index height, width, channels, size, stride, padding, out_height, out_width;

  /// Returns the rows (or columns) of an image with `extent` rows that window `step` covers.
  STARLING_HOST_DEVICE Span pixels_in_window(Index step, Index extent) const {
    const Index start = step * stride;
    const Index end = start + size - padding;
    return {start < padding ? 0 : start - padding, end < extent ? end : extent};
  }
  /// Returns the windows, of `steps` windows in one direction, that cover row (or column) `pixel`.
  STARLING_HOST_DEVICE Span windows_over_pixel(Index pixel, Index steps) const {
    const Index end = (pixel + padding) / stride + 1;
    const Index padded_end = pixel + padding + 1;
    const Index first = padded_end <= size ? 0 : (padded_end - size + stride - 1) / stride;
    return {first, end < steps ? end : steps};
  }
  /// The index of a number of the input.
  STARLING_HOST_DEVICE Index input_index(const Position& position, Index row, Index column) const {
    return index_at(position, row, column, height, width, channels);
  }
  /// The index of a number of the output.
  STARLING_HOST_DEVICE Index output_index(const Position& position, Index row, Index column) const {
    return index_at(position, row, column, out_height, out_width, channels);
  }
};

/// Called for each number of y: finds the largest number of a window and its index in x; of equal
/// ones the first of the first column, as the CPU does.
struct MaxPool {
  Pooling p;
  const float* x;
  float* y;
  Index* indices;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position to{i, p.out_height, p.out_width, p.channels};
    const Span rows = p.pixels_in_window(to.row, p.height);
    const Span columns = p.pixels_in_window(to.column, p.width);
    Index best = p.input_index(to, rows.from, columns.from);
    for (Index s = columns.from; s < columns.to; ++s) {
      Index best_row = p.input_index(to, rows.from, s);
      for (Index r = rows.from + 1; r < rows.to; ++r)
        if (x[p.input_index(to, r, s)] > x[best_row]) best_row = p.input_index(to, r, s);
      if (s == columns.from || x[best_row] > x[best]) best = best_row;
    }
    y[i] = x[best];
    indices[i] = best;
  }
};

/// Called for each number of dx: adds the derivatives of all windows over it, in a fixed order.
struct MaxPoolBackward {
  Pooling p;
  const Index* indices;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position to{i, p.height, p.width, p.channels};
    const Span rows = p.windows_over_pixel(to.row, p.out_height);
    const Span columns = p.windows_over_pixel(to.column, p.out_width);
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) {
        const Index window = p.output_index(to, r, s);
        if (indices[window] == i) sum += dy[window];
      }
    dx[i] = sum;
  }
};

/// Called for each number of y: computes the mean of a window's pixels within the image.
struct AvgPool {
  Pooling p;
  const float* x;
  float* y;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position to{i, p.out_height, p.out_width, p.channels};
    const Span rows = p.pixels_in_window(to.row, p.height);
    const Span columns = p.pixels_in_window(to.column, p.width);
    const float share = 1 / static_cast<float>((rows.to - rows.from) * (columns.to - columns.from));
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) sum += share * x[p.input_index(to, r, s)];
    y[i] = sum;
  }
};

/// Called for each number of dx.
struct AvgPoolBackward {
  Pooling p;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position to{i, p.height, p.width, p.channels};
    const Span rows = p.windows_over_pixel(to.row, p.out_height);
    const Span columns = p.windows_over_pixel(to.column, p.out_width);
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) {
        const Span height = p.pixels_in_window(r, p.height);
        const Span width = p.pixels_in_window(s, p.width);
        const float share =
            1 / static_cast<float>((height.to - height.from) * (width.to - width.from));
        sum += share * dy[p.output_index(to, r, s)];
      }
    dx[i] = sum;
  }
};

/// Called for each number of y [n x channels]: computes the mean of a channel of x [n x pixels x
/// channels].
struct GlobalAvgPool {
  const float* x;
  float* y;
  Index pixels, channels;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index first = i / channels * pixels * channels + i % channels;
    float sum = 0;
    for (Index k = 0; k < pixels; ++k) {
      const Index at = first + k * channels;
      sum += x[at];
    }
    y[i] = sum / static_cast<float>(pixels);
  }
};

/// Called for each number of dx.
struct GlobalAvgPoolBackward {
  const float* dy;
  float* dx;
  Index pixels, channels;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index image = i / (pixels * channels);
    dx[i] = dy[image * channels + i % channels] / static_cast<float>(pixels);
  }
};

/// Called for each number of y: mirrors its image, or moves it by -shift_max to shift_max rows and
/// columns, as drawn for the image. In the backward pass, called for each number of dx, reverses
/// this. A pixel that comes from outside the image is 0.
struct Augment {
  const float* x;
  float* y;
  Index height, width, channels;
  /// The largest shift; 0 to mirror each image with probability 1/2 instead.
  Index shift_max;
  bool is_backward;
  Draws draws;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Position to{i, height, width, channels};
    const std::uint32_t bits = draws.at(to.image).word[0];
    Index row = to.row;
    Index column = to.column;
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
    y[i] = is_inside ? x[index_at(to, row, column, height, width, channels)] : 0;
  }
};

}  // namespace starling::models::cuda
