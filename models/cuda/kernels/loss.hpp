/// Internal: functions that compute the loss of one row and its derivatives with respect to the
/// scores z, as models/loss.hpp defines them. On the device, the lanes of a warp compute a row
/// together; on the host, one lane does.
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// The host's single lane. The type parameter Lanes below is OneLane, or WarpLanes of net_run.cu.
struct OneLane {
  STARLING_HOST_DEVICE static Index lane() { return 0; }
  STARLING_HOST_DEVICE static Index count() { return 1; }
  /// Returns the sum of `value` over all lanes.
  STARLING_HOST_DEVICE static float sum(float value) { return value; }
  /// Sets `score` and `index` of all lanes to those of the lane with the largest score; if several
  /// scores are equal, to those of the lane with the smallest index.
  STARLING_HOST_DEVICE static void find_best(float& /*score*/, Index& /*index*/) {}
};

/// The terms of one row in the sums of an Accumulator. They are doubles, as those of the CPU,
/// because the square of a float may be too large for a float.
struct RowLoss {
  double loss;
  double metric_value;
};

/// Computes the loss log(sum_j e^(z_j)) - z_label of k scores. Unless `derivatives` is null, sets
/// its element j to weight * (softmax(z)_j - 1) if j is the label, else to weight * softmax(z)_j.
template <class Lanes>
STARLING_HOST_DEVICE RowLoss softmax_row(const float* z, Index k, Index label, float weight,
                                         float* derivatives, const Lanes& lanes) {
  // Each lane begins with the first score, so that a NaN there stays the largest, as on the CPU.
  float largest = z[0];
  Index best = 0;
  for (Index j = lanes.lane(); j < k; j += lanes.count())
    if (z[j] > largest) {
      largest = z[j];
      best = j;
    }
  lanes.find_best(largest, best);
  float part = 0;
  for (Index j = lanes.lane(); j < k; j += lanes.count()) part += expf(z[j] - largest);
  const float sum = lanes.sum(part);
  const RowLoss row{static_cast<double>(logf(sum) - (z[label] - largest)),
                    best == label ? 1.0 : 0.0};
  if (derivatives == nullptr) return row;
  const float factor = weight / sum;
  for (Index j = lanes.lane(); j < k; j += lanes.count())
    derivatives[j] = factor * expf(z[j] - largest) - (j == label ? weight : 0);
  return row;
}

/// Computes the loss (z - label)^2 / 2 and, unless `derivative` is null, its derivative times
/// weight.
STARLING_HOST_DEVICE inline RowLoss squared_row(float z, float label, float weight,
                                                float* derivative) {
  const float error = z - label;
  if (derivative != nullptr) *derivative = weight * error;
  const double square = static_cast<double>(error) * static_cast<double>(error);
  return {0.5 * square, square};
}

/// Computes the contrastive loss of a pair of vectors of `width` elements, which follow each other
/// in z, and, unless `derivatives` is null, its derivatives times weight.
template <class Lanes>
STARLING_HOST_DEVICE RowLoss contrastive_row(const float* z, Index width, bool is_alike,
                                             float margin, float weight, float* derivatives,
                                             const Lanes& lanes) {
  float part = 0;
  for (Index j = lanes.lane(); j < width; j += lanes.count()) {
    const float d = z[j] - z[width + j];
    part += d * d;
  }
  const float distance = sqrtf(lanes.sum(part));
  const float slack = margin <= distance ? 0 : margin - distance;  // keeps NaN
  const float error = is_alike ? distance : slack;
  const RowLoss row{0.5 * static_cast<double>(error) * static_cast<double>(error),
                    (distance < margin / 2) == is_alike ? 1.0 : 0.0};
  if (derivatives == nullptr) return row;
  const float factor = is_alike ? weight : distance > 0 ? -weight * error / distance : 0;
  for (Index j = lanes.lane(); j < width; j += lanes.count()) {
    const float d = factor * (z[j] - z[width + j]);
    derivatives[j] = d;
    derivatives[width + j] = -d;
  }
  return row;
}

}  // namespace starling::models::cuda
