/// Internal: bodies of batch normalisation, over rows [rows x channels] in groups: each 256 rows of
/// a batch are normalised by statistics of their own, as the CPU does, which handles a batch in
/// such pieces. Statistics are [groups x channels].
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Rows in groups of group_rows; the last may be shorter.
struct Groups {
  Index rows, channels, group_rows;

  STARLING_HOST_DEVICE Index count() const { return (rows + group_rows - 1) / group_rows; }
  STARLING_HOST_DEVICE Index size(Index group) const {
    const Index left = rows - group * group_rows;
    return left < group_rows ? left : group_rows;
  }
  /// Where the statistics of number i stand.
  STARLING_HOST_DEVICE Index of(Index i) const {
    return i / channels / group_rows * channels + i % channels;
  }
};

/// Over statistics: sums become means.
struct DivideByRows {
  Groups groups;
  float* sums;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    sums[i] /= static_cast<float>(groups.size(i / groups.channels));
  }
};

/// Over statistics: the variance becomes 1 / sqrt(variance + epsilon), and y = factor x + constant.
/// Pushes that arrive out of order can bring a variance below zero; it then counts as zero.
struct Normaliser {
  Index channels;
  const float* w;
  const float* mean;
  float* inverse;
  float* factor;
  float* constant;
  float epsilon;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index j = i % channels;
    const float variance = inverse[i] > 0 ? inverse[i] : 0;
    inverse[i] = 1 / sqrtf(variance + epsilon);
    factor[i] = w[j] * inverse[i];
    constant[i] = w[channels + j] - factor[i] * mean[i];
  }
};

/// Over y.
struct Normalise {
  Groups groups;
  const float* factor;
  const float* constant;
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index at = groups.of(i);
    y[i] = factor[at] * x[i] + constant[at];
  }
};

/// Over channels: the gradient by scale and shift from the sums of dy (x - mean) and of dy, and the
/// change of the running statistics; then the factors a, b, c of dx = a dy + b x + c, which take
/// the place of the sums and of `c`.
struct NormaliserBackward {
  Groups groups;
  const float* w;
  const float* mean;
  const float* inverse;
  /// In: sums of dy (x - mean); out: b.
  float* products;
  /// In: sums of dy; out: c.
  float* totals;
  /// Out: a.
  float* a;
  float* g;
  float epsilon, momentum;
  /// One row's share of the batch, a row being a sample's pixel.
  float weight;

  STARLING_HOST_DEVICE void operator()(Index j) const {
    const Index channels = groups.channels;
    for (Index group = 0; group < groups.count(); ++group) {
      const Index i = group * channels + j;
      const float m = static_cast<float>(groups.size(group));
      const float scale = w[j] * inverse[i];
      g[j] += products[i] * inverse[i];
      g[channels + j] += totals[i];
      const float variance = 1 / (inverse[i] * inverse[i]) - epsilon;
      const float unbiased = m > 1 ? m / (m - 1) : 1;
      const float share = momentum * weight * m;
      g[2 * channels + j] += share * (mean[i] - w[2 * channels + j]);
      g[3 * channels + j] += share * (unbiased * variance - w[3 * channels + j]);
      const float b = -scale * inverse[i] * inverse[i] * products[i] / m;
      a[i] = scale;
      totals[i] = -scale * totals[i] / m - b * mean[i];
      products[i] = b;
    }
  }
};

/// Over dx.
struct NormaliseBackward {
  Groups groups;
  const float* a;
  const float* b;
  const float* c;
  const float* x;
  const float* dy;
  float* dx;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index at = groups.of(i);
    dx[i] = a[at] * dy[i] + b[at] * x[i] + c[at];
  }
};

}  // namespace starling::models::cuda
