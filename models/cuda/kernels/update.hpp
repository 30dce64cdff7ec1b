/// Internal: the update of one parameter by an optimiser, with clipping and weight decay, as
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

/// The numbers of one step's update. They are copied to the device before each step, where the
/// recorded graph of the step reads them.
struct StagedUpdate {
  /// The bytes of the optimiser's Update<float>.
  alignas(float) std::byte update[8 * sizeof(float)] = {};
  float l2 = 0;
  /// The factor by which changes of untrained parameters are multiplied.
  float share = 1;
};

/// The type of an optimiser's update.
template <OptimizerRule O>
using UpdateBy = decltype(std::declval<const O&>().template update<float>({}));

/// Returns the update of one step.
inline StagedUpdate stage(const Optimizer& optimizer, const ApplyOptions& options) {
  StagedUpdate staged{.l2 = static_cast<float>(options.l2)};
  std::visit(
      [&]<class O>(const O& rule) {
        const UpdateBy<O> update = rule.template update<float>(options);
        static_assert(sizeof update <= sizeof staged.update);
        std::memcpy(staged.update, &update, sizeof update);
      },
      optimizer);
  return staged;
}

/// The bounds on the norm of a whole gradient, and on the absolute value of each element.
struct ClipBounds {
  double norm = INFINITY;
  float value = INFINITY;
};

/// Returns the bounds of each alternative of Clip.
inline ClipBounds bounds_of(const NoClip&) { return {}; }
inline ClipBounds bounds_of(const ValueClip& clip) {
  return {.value = static_cast<float>(clip.limit)};
}
inline ClipBounds bounds_of(const NormClip& clip) { return {.norm = clip.limit}; }

/// Returns the bounds of a Clip. This is no overload of bounds_of(): an alternative without its own
/// bounds_of() would be converted to a Clip and call it for ever.
inline ClipBounds clip_bounds(const Clip& clip) {
  return std::visit([](const auto& rule) { return bounds_of(rule); }, clip);
}

/// Multiplies a gradient by `factor`, then limits each element to [-limit, limit].
struct Clipping {
  float factor = 1;
  float limit = INFINITY;
};

/// Returns the factor that clips a gradient whose squares sum to `squares` to the norm `limit`.
STARLING_HOST_DEVICE inline float norm_factor(double squares, double limit) {
  const double norm = sqrt(squares);
  return norm > limit && norm < INFINITY ? static_cast<float>(limit / norm) : 1.0F;
}

STARLING_HOST_DEVICE inline float clip_element(float g, const Clipping& clip) {
  const float scaled = clip.factor * g;
  if (scaled > clip.limit) return clip.limit;
  return scaled < -clip.limit ? -clip.limit : scaled;
}

/// Consecutive numbers of one parameter tensor; one block of threads updates them.
struct Stretch {
  std::uint32_t size = 0;
  std::uint64_t start = 0;
  bool decays = true;
  bool trained = true;
};

/// Updates one number of a stretch. `staged` holds an update of type By. The optimiser's state has
/// one or more slots of `total` numbers.
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
    const float gradient = clip_element(g[i], clip);
    by(stretch.decays ? gradient + staged.l2 * w[i] : gradient, w[i],
       Slots<float>{state, total, i});
  }
};

}  // namespace starling::models::cuda
