/// Internal: the update of one parameter by an optimiser, with clipping and weight decay, as
/// models/optimizer/optimizer.hpp and models/optimizer/clip.hpp define them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "starling/models/cuda/kernels/index.hpp"
#include "starling/models/kernels/host_device.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models::cuda {

/// The values of one step's update, such as the learning rate. They are copied to the device before
/// each step, where the step's recorded graph reads them.
struct StagedUpdate {
  /// The bytes of the optimiser's Update<float>.
  alignas(float) std::byte update[8 * sizeof(float)] = {};
  float l2 = 0;
  /// The factor for the changes of untrained parameters, such as running statistics.
  float share = 1;
};

/// The type of the update of optimiser O in float; see UpdateOf.
template <OptimizerRule O>
using OptimizerUpdate = decltype(std::declval<const O&>().template make_update<float>({}));

/// Returns the values of the update that `options` describe.
inline StagedUpdate stage(const Optimizer& optimizer, const ApplyOptions& options) {
  StagedUpdate staged{.l2 = static_cast<float>(options.l2)};
  std::visit(
      [&]<class O>(const O& rule) {
        const OptimizerUpdate<O> update = rule.template make_update<float>(options);
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

/// Returns the bounds of one alternative of Clip.
inline ClipBounds bounds_of(const NoClip&) { return {}; }
inline ClipBounds bounds_of(const ValueClip& clip) {
  return {.value = static_cast<float>(clip.limit)};
}
inline ClipBounds bounds_of(const NormClip& clip) { return {.norm = clip.limit}; }

/// Returns the bounds of a Clip. It is not called bounds_of(), because an alternative of Clip that
/// lacks a bounds_of() would then be converted to a Clip, in endless recursion.
inline ClipBounds clip_bounds(const Clip& clip) {
  return std::visit([](const auto& rule) { return bounds_of(rule); }, clip);
}

/// How clip_element() clips: it multiplies an element of a gradient by `factor`, then limits it to
/// [-limit, limit].
struct Clipping {
  float factor = 1;
  float limit = INFINITY;
};

/// Returns the factor that clips a gradient to the norm `limit`. `squares` is the sum of the
/// squares of its elements. Returns 1 if the norm is not finite.
STARLING_HOST_DEVICE inline float norm_factor(double squares, double limit) {
  const double norm = sqrt(squares);
  return norm > limit && norm < INFINITY ? static_cast<float>(limit / norm) : 1.0F;
}

STARLING_HOST_DEVICE inline float clip_element(float g, const Clipping& clip) {
  const float scaled = clip.factor * g;
  if (scaled > clip.limit) return clip.limit;
  return scaled < -clip.limit ? -clip.limit : scaled;
}

/// Consecutive elements of one parameter tensor, from `start` in the parameter vector on. One block
/// of threads updates them.
struct Segment {
  std::uint32_t size = 0;
  std::uint64_t start = 0;
  bool decays = true;
  bool trained = true;
};

/// Updates element i of the parameters w, which is in `segment`. `staged` holds an update of type
/// Arithmetic. `state` consists of the optimiser's slots, each of `total` elements.
template <UpdateOf<float> Arithmetic>
struct Update {
  StagedUpdate staged;
  const float* g;
  float* w;
  float* state;
  std::uint64_t total;

  STARLING_HOST_DEVICE void operator()(const Segment& segment, std::uint64_t i,
                                       const Clipping& clip) const {
    if (!segment.trained) {
      w[i] += staged.share * g[i];
      return;
    }
    Arithmetic arithmetic;
    memcpy(&arithmetic, staged.update, sizeof arithmetic);
    const float gradient = clip_element(g[i], clip);
    arithmetic(segment.decays ? gradient + staged.l2 * w[i] : gradient, w[i],
               Slots<float>{state, total, i});
  }
};

}  // namespace starling::models::cuda
