/// Internal: computes the loss of one row and its derivatives together, as models/loss.hpp defines
/// them. On the device the lanes of a warp share a row; on the host a row has one lane.
#pragma once

#include <cmath>

#include "starling/models/cuda/kernels/host_device.hpp"

namespace starling::models::cuda {

/// One lane for a whole row.
struct OneLane {
  STARLING_HOST_DEVICE static Index lane() { return 0; }
  STARLING_HOST_DEVICE static Index count() { return 1; }
  STARLING_HOST_DEVICE static float sum(float value) { return value; }
  /// Finds the largest score of all lanes and, of equal scores, the first place.
  STARLING_HOST_DEVICE static void best(float&, Index&) {}
};

struct RowLoss {
  float loss;
  float merit;
};

/// log(sum_j e^(z_j)) - z_label over k scores; slopes = weight (softmax(z) - [j is the label]),
/// unless it is null.
template <class Lanes>
STARLING_HOST_DEVICE RowLoss softmax_row(const float* z, Index k, Index label, float weight,
                                         float* slopes, const Lanes& lanes) {
  float most = -INFINITY;
  Index best = 0;
  for (Index j = lanes.lane(); j < k; j += lanes.count())
    if (z[j] > most) {
      most = z[j];
      best = j;
    }
  lanes.best(most, best);
  float part = 0;
  for (Index j = lanes.lane(); j < k; j += lanes.count()) part += expf(z[j] - most);
  const float sum = lanes.sum(part);
  const RowLoss row{logf(sum) - (z[label] - most), best == label ? 1.0F : 0.0F};
  if (slopes == nullptr) return row;
  const float factor = weight / sum;
  for (Index j = lanes.lane(); j < k; j += lanes.count())
    slopes[j] = factor * expf(z[j] - most) - (j == label ? weight : 0);
  return row;
}

/// (z - y)^2 / 2.
STARLING_HOST_DEVICE inline RowLoss squared_row(float z, float label, float weight, float* slope) {
  const float error = z - label;
  if (slope != nullptr) *slope = weight * error;
  return {0.5F * error * error, error * error};
}

/// A pair of vectors of `width` numbers, one behind the other, alike or not.
template <class Lanes>
STARLING_HOST_DEVICE RowLoss contrastive_row(const float* z, Index width, bool alike, float margin,
                                             float weight, float* slopes, const Lanes& lanes) {
  float part = 0;
  for (Index j = lanes.lane(); j < width; j += lanes.count()) {
    const float d = z[j] - z[width + j];
    part += d * d;
  }
  const float far = sqrtf(lanes.sum(part));
  const float slack = margin > far ? margin - far : 0;
  const float error = alike ? far : slack;
  const RowLoss row{0.5F * error * error, (far < margin / 2) == alike ? 1.0F : 0.0F};
  if (slopes == nullptr) return row;
  const float factor = alike ? weight : far > 0 ? -weight * error / far : 0;
  for (Index j = lanes.lane(); j < width; j += lanes.count()) {
    const float d = factor * (z[j] - z[width + j]);
    slopes[j] = d;
    slopes[width + j] = -d;
  }
  return row;
}

}  // namespace starling::models::cuda
