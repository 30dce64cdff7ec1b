/// Internal: runs an optimiser on a device. One kernel clips the gradient, adds weight decay and
/// updates all parameters, also the untrained ones. If the gradient's norm is clipped, two kernels
/// compute the norm first. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/update.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models::cuda {

/// An optimiser with its state on the current device.
class DeviceUpdate {
 public:
  /// The optimiser's state is initially zero. Throws Failure. Requires: a valid optimiser, and the
  /// parameters of a model.
  DeviceUpdate(const Optimizer& optimizer, const Clip& clip,
               const std::vector<Parameter>& parameters);

  /// Puts one update of the parameters w by the gradient g into the context's stream. All pointers
  /// are to the device's memory.
  void apply(const Context& context, const StagedUpdate* staged, const float* g, float* w);

 private:
  /// The number of blocks of threads: one for each segment.
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(segments_.size()); }

  Optimizer optimizer_;
  ClipBounds clip_;
  /// The number of elements of all parameters.
  std::size_t total_ = 0;
  DeviceArray<Segment> segments_;
  DeviceArray<float> state_;
  /// The sum of squares of each segment, if the gradient's norm is clipped.
  DeviceArray<double> squares_;
  /// The factor that clips the gradient's norm.
  DeviceArray<float> factor_;
};

}  // namespace starling::models::cuda
