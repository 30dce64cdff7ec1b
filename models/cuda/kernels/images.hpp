/// Internal: bodies over images, channels last: pooling, and shifting and mirroring at random.
#pragma once

#include <cstdint>

#include "starling/models/cuda/kernels/host_device.hpp"
#include "starling/models/cuda/kernels/philox.hpp"

namespace starling::models::cuda {

struct Span {
  Index from;
  Index to;
};

/// Coordinates of number i of images [height x width x channels].
struct Place {
  Index image, row, column, channel;
  STARLING_HOST_DEVICE Place(Index i, Index height, Index width, Index channels)
      : channel(i % channels) {
    Index rest = i / channels;
    column = rest % width;
    rest /= width;
    row = rest % height;
    image = rest / height;
  }
};

/// Returns the number of another pixel of the same image and channel: the reverse of Place.
STARLING_HOST_DEVICE inline Index number_at(const Place& place, Index row, Index column,
                                            Index height, Index width, Index channels) {
  return ((place.image * height + row) * width + column) * channels + place.channel;
}

/// PoolShape (models/net/layers/layer_specification.hpp) in the device's types.
struct Pooling {
  Index height, width, channels, size, stride, padding, out_height, out_width;

  /// Returns the pixels, of `extent`, that window `step` sees.
  STARLING_HOST_DEVICE Span seen(Index step, Index extent) const {
    const Index at = step * stride;
    const Index end = at + size - padding;
    return {at < padding ? 0 : at - padding, end < extent ? end : extent};
  }
  /// Returns the windows, of `steps`, that see pixel `at`.
  STARLING_HOST_DEVICE Span seeing(Index at, Index steps) const {
    const Index last = (at + padding) / stride + 1;
    const Index before = at + padding + 1;
    const Index first = before <= size ? 0 : (before - size + stride - 1) / stride;
    return {first, last < steps ? last : steps};
  }
  /// The numbers of a pixel of the input, and of the output.
  STARLING_HOST_DEVICE Index in(const Place& place, Index row, Index column) const {
    return number_at(place, row, column, height, width, channels);
  }
  STARLING_HOST_DEVICE Index out(const Place& place, Index row, Index column) const {
    return number_at(place, row, column, out_height, out_width, channels);
  }
};

/// Over y: the largest number of each window, and its place in x. If several are equal, it takes
/// the first one of the first column, as on the CPU.
struct MaxPool {
  Pooling p;
  const float* x;
  float* y;
  Index* found;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Place to{i, p.out_height, p.out_width, p.channels};
    const Span rows = p.seen(to.row, p.height);
    const Span columns = p.seen(to.column, p.width);
    Index best = p.in(to, rows.from, columns.from);
    for (Index s = columns.from; s < columns.to; ++s) {
      Index best_row = p.in(to, rows.from, s);
      for (Index r = rows.from + 1; r < rows.to; ++r)
        if (x[p.in(to, r, s)] > x[best_row]) best_row = p.in(to, r, s);
      if (s == columns.from || x[best_row] > x[best]) best = best_row;
    }
    y[i] = x[best];
    found[i] = best;
  }
};

/// Over dx: gathers the derivatives, so that sums have a fixed order.
struct MaxPoolBackward {
  Pooling p;
  const Index* found;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Place to{i, p.height, p.width, p.channels};
    const Span rows = p.seeing(to.row, p.out_height);
    const Span columns = p.seeing(to.column, p.out_width);
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) {
        const Index window = p.out(to, r, s);
        if (found[window] == i) sum += dy[window];
      }
    dx[i] = sum;
  }
};

/// Over y: the mean of what each window sees within the image.
struct AvgPool {
  Pooling p;
  const float* x;
  float* y;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Place to{i, p.out_height, p.out_width, p.channels};
    const Span rows = p.seen(to.row, p.height);
    const Span columns = p.seen(to.column, p.width);
    const float share = 1 / static_cast<float>((rows.to - rows.from) * (columns.to - columns.from));
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) sum += share * x[p.in(to, r, s)];
    y[i] = sum;
  }
};

/// Over dx.
struct AvgPoolBackward {
  Pooling p;
  const float* dy;
  float* dx;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Place to{i, p.height, p.width, p.channels};
    const Span rows = p.seeing(to.row, p.out_height);
    const Span columns = p.seeing(to.column, p.out_width);
    float sum = 0;
    for (Index r = rows.from; r < rows.to; ++r)
      for (Index s = columns.from; s < columns.to; ++s) {
        const Span height = p.seen(r, p.height);
        const Span width = p.seen(s, p.width);
        const float share =
            1 / static_cast<float>((height.to - height.from) * (width.to - width.from));
        sum += share * dy[p.out(to, r, s)];
      }
    dx[i] = sum;
  }
};

/// Over y [n x channels]: the mean of each channel of x [n x pixels x channels].
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

/// Over dx.
struct GlobalAvgPoolBackward {
  const float* dy;
  float* dx;
  Index pixels, channels;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index image = i / (pixels * channels);
    dx[i] = dy[image * channels + i % channels] / static_cast<float>(pixels);
  }
};

/// Over y: mirrors image k, or moves it by -most to most rows and columns, as drawn for it; over
/// dx, reverses this. A pixel that comes from outside the image is 0.
struct Augment {
  const float* x;
  float* y;
  Index height, width, channels;
  /// 0: mirrors each image with chance 1/2; else the largest shift.
  Index most;
  bool backward;
  Draws draws;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Place to{i, height, width, channels};
    const std::uint32_t bits = draws.at(to.image).word[0];
    Index row = to.row;
    Index column = to.column;
    if (most == 0) {
      if (below(bits, 2) == 1) column = width - 1 - column;
    } else {
      const Index ways = 2 * most + 1;
      const Index drawn = below(bits, ways * ways);
      // Beyond the upper or left border the difference wraps around, so that it is outside the
      // image, too.
      row = backward ? row + most - drawn / ways : row + drawn / ways - most;
      column = backward ? column + most - drawn % ways : column + drawn % ways - most;
    }
    const bool inside = row < height && column < width;
    y[i] = inside ? x[number_at(to, row, column, height, width, channels)] : 0;
  }
};

}  // namespace starling::models::cuda
