/// Internal: updates parameters by a gradient on a device. One kernel clips the gradient, adds
/// weight decay, and applies the optimizer's rule to the trained parameters. To an untrained
/// parameter, such as a running mean, it adds the gradient times StagedUpdate::share. If the clip
/// rule limits the gradient's norm, two kernels first compute the factor that clips it. Not
/// thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/update.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models::cuda {

/// An optimizer, and its slots in the memory of the device that is current in the constructor.
class DeviceUpdate {
 public:
  /// Allocates the optimizer's slots and sets them to 0. Throws Failure if a call of CUDA fails, as
  /// when there is too little memory. `parameters` are all parameters of a model, in the order of
  /// the parameter vector. Requires: `optimizer` and `clip` are valid.
  DeviceUpdate(const Optimizer& optimizer, const Clip& clip,
               const std::vector<Parameter>& parameters);

  /// Adds the kernels of one update to the context's stream: they update the parameters `w` by the
  /// gradient `g`, with the learning rate and the other values of `staged`. All pointers are to the
  /// device's memory, which the kernels read when they run, also if the call was recorded as a
  /// graph. Throws Failure if a kernel cannot be launched.
  void apply(const Context& context, const StagedUpdate* staged, const float* g, float* w);

 private:
  /// Returns the number of thread blocks of a kernel that reads all segments: one for each segment.
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(segments_.size()); }

  Optimizer optimizer_;
  ClipBounds clip_;
  /// The number of elements of all parameters.
  std::size_t total_ = 0;
  /// The pieces of the parameter vector. One thread block handles each of them.
  DeviceArray<Segment> segments_;
  /// The optimizer's slots, each of total_ elements, one after the other.
  DeviceArray<float> state_;
  /// For each segment, the sum of the squares of its gradient; 0 if the segment is not trained.
  /// Empty unless the clip rule limits the gradient's norm.
  DeviceArray<double> squares_;
  /// One element: the factor by which the update multiplies the gradient, so that its norm is
  /// within the limit. Empty unless the clip rule limits the norm.
  DeviceArray<float> factor_;
};

}  // namespace starling::models::cuda
