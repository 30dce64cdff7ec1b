/// Internal: one optimiser step of one number, clipping and weight decay included, as
/// models/optimizer/optimizer.hpp and models/optimizer/clip.hpp define them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "starling/models/cuda/kernels/host_device.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models::cuda {

/// One step's update as it is copied to a device, where a recorded graph reads it anew each time.
struct StagedUpdate {
  /// The bytes of the optimiser's Update<float>.
  alignas(float) std::byte update[8 * sizeof(float)] = {};
  float l2 = 0;
  /// The factor of changes of parameters that are not trained.
  float share = 1;
};

/// The arithmetic of an optimiser's update.
template <OptimizerRule O>
using UpdateBy = decltype(std::declval<const O&>().template update<float>({}));

inline StagedUpdate stage(const Optimizer& optimizer, const ApplyOptions& options) {
  StagedUpdate staged{.l2 = static_cast<float>(options.l2)};
  std::visit(
      [&]<class O>(const O& any) {
        const UpdateBy<O> update = any.template update<float>(options);
        static_assert(sizeof update <= sizeof staged.update);
        std::memcpy(staged.update, &update, sizeof update);
      },
      optimizer);
  return staged;
}

/// The bounds of a clip: on the norm of a whole gradient, and on each of its elements.
struct ClipBounds {
  double norm = INFINITY;
  float value = INFINITY;
};

/// One for each alternative of Clip.
inline ClipBounds bounds_of(const NoClip&) { return {}; }
inline ClipBounds bounds_of(const ValueClip& clip) {
  return {.value = static_cast<float>(clip.limit)};
}
inline ClipBounds bounds_of(const NormClip& clip) { return {.norm = clip.limit}; }

/// Its name differs from theirs: an alternative without one would be converted to a Clip.
inline ClipBounds clip_bounds(const Clip& clip) {
  return std::visit([](const auto& any) { return bounds_of(any); }, clip);
}

/// Clipping: a gradient is multiplied by `factor`, then kept within [-limit, limit].
struct Clipping {
  float factor = 1;
  float limit = INFINITY;
};

/// Returns the factor that clips a gradient whose squares sum to `squares` to the norm `limit`.
STARLING_HOST_DEVICE inline float norm_factor(double squares, double limit) {
  const double norm = sqrt(squares);
  return norm > limit && norm < INFINITY ? static_cast<float>(limit / norm) : 1.0F;
}

STARLING_HOST_DEVICE inline float clipped(float g, const Clipping& clip) {
  const float scaled = clip.factor * g;
  if (scaled > clip.limit) return clip.limit;
  return scaled < -clip.limit ? -clip.limit : scaled;
}

/// A stretch of one parameter.
struct Stretch {
  std::uint32_t size = 0;
  std::uint64_t start = 0;
  bool decays = true;
  bool trained = true;
};

/// Updates one number of a stretch. `staged` holds an update of type By; slots are `total` numbers
/// apart.
template <UpdateOf<float> By>
struct Update {
  StagedUpdate staged;
  const float* g;
  float* w;
  float* state;
  std::uint64_t total;

  STARLING_HOST_DEVICE void operator()(const Stretch& stretch, std::uint64_t i,
                                       const Clipping& clip) const {
    if (!stretch.trained) {
      w[i] += staged.share * g[i];
      return;
    }
    By by;
    memcpy(&by, staged.update, sizeof by);
    const float slope = clipped(g[i], clip);
    by(stretch.decays ? slope + staged.l2 * w[i] : slope, w[i], Slots<float>{state, total, i});
  }
};

}  // namespace starling::models::cuda
