/// Internal: kernel bodies of batch normalisation. The input is a matrix [rows x channels]; a row
/// is one pixel of one sample. The rows of the matrix are divided into groups; each group has the
/// samples of 256 rows of the data, and is normalised by its own statistics, because the CPU
/// computes a batch in micro-batches of 256 rows of the data. Statistics are [groups x channels].
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// The division of rows into groups of group_rows; the last group may be shorter.
struct Groups {
  Index rows, channels, group_rows;

  /// Returns the number of groups.
  STARLING_HOST_DEVICE Index count() const { return (rows + group_rows - 1) / group_rows; }
  /// Returns the number of rows of a group.
  STARLING_HOST_DEVICE Index size(Index group) const {
    const Index left = rows - group * group_rows;
    return left < group_rows ? left : group_rows;
  }
  /// Returns the index of the statistic for element i of the matrix.
  STARLING_HOST_DEVICE Index statistic_of(Index i) const {
    return i / channels / group_rows * channels + i % channels;
  }
};

/// Called for each statistic: turns the sum over the rows of a group into a mean.
struct DivideByRows {
  Groups groups;
  float* sums;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    sums[i] /= static_cast<float>(groups.size(i / groups.channels));
  }
};

/// Called for each statistic: turns the variance into 1 / sqrt(variance + epsilon), and computes
/// the coefficients of y = factor x + constant. A negative variance counts as zero: a running
/// variance may become negative when pushes arrive out of order.
struct PrepareNormalise {
  Index channels;
  /// The layer's parameters [4 x channels]: scale, shift, running mean, running variance.
  const float* w;
  const float* mean;
  /// In: the variance; out: 1 / sqrt(variance + epsilon).
  float* inverse;
  float* factor;
  float* constant;
  float epsilon;

  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index j = i % channels;
    const float variance = inverse[i] < 0 ? 0 : inverse[i];  // keeps NaN
    inverse[i] = 1 / sqrtf(variance + epsilon);
    factor[i] = w[j] * inverse[i];
    constant[i] = w[channels + j] - factor[i] * mean[i];
  }
};

/// Called for each element of y.
struct Normalise {
  Groups groups;
  const float* factor;
  const float* constant;
  const float* x;
  float* y;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index s = groups.statistic_of(i);
    y[i] = factor[s] * x[i] + constant[s];
  }
};

/// Called for each channel: adds the derivatives with respect to scale and shift, and the change of
/// the running statistics, to g; then computes the coefficients of dx = a dy + b x + c.
struct PrepareNormaliseBackward {
  Groups groups;
  /// The layer's parameters, as in PrepareNormalise.
  const float* w;
  const float* mean;
  /// 1 / sqrt(variance + epsilon).
  const float* inverse;
  /// In: the sums of dy (x - mean); out: b.
  float* products;
  /// In: the sums of dy; out: c.
  float* totals;
  /// Out: a.
  float* a;
  float* g;
  float epsilon, momentum;
  /// The share of one row of the matrix in the whole batch.
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
      const float share = momentum * weight * m;
      if (m > 1) {  // one row has no variance
        const float bias_correction = m / (m - 1);
        g[2 * channels + j] += share * (mean[i] - w[2 * channels + j]);
        g[3 * channels + j] += share * (bias_correction * variance - w[3 * channels + j]);
      }
      const float b = -scale * inverse[i] * inverse[i] * products[i] / m;
      a[i] = scale;
      totals[i] = -scale * totals[i] / m - b * mean[i];
      products[i] = b;
    }
  }
};

/// Called for each element of dx.
struct NormaliseBackward {
  Groups groups;
  const float* a;
  const float* b;
  const float* c;
  const float* x;
  const float* dy;
  float* dx;
  STARLING_HOST_DEVICE void operator()(Index i) const {
    const Index s = groups.statistic_of(i);
    dx[i] = a[s] * dy[i] + b[s] * x[i] + c[s];
  }
};

}  // namespace starling::models::cuda
