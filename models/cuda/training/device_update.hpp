/// Internal: runs an optimiser on a device. One kernel clips, decays weights and updates all
/// parameters, also the untrained ones. One thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/update.hpp"
#include "starling/models/parameter.hpp"

namespace starling::models::cuda {

class DeviceUpdate {
 public:
  /// The optimiser's state is initially zero. Throws Failure. Requires: a valid optimiser, and the
  /// parameters of a model.
  DeviceUpdate(const Optimizer& optimizer, const Clip& clip,
               const std::vector<Parameter>& parameters);

  /// Puts one update of w by g into the context's stream. All pointers are to the device's memory.
  void apply(const Context& context, const StagedUpdate* staged, const float* g, float* w);

 private:
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(stretches_.size()); }

  Optimizer optimizer_;
  ClipBounds clip_;
  std::size_t total_ = 0;
  DeviceArray<Stretch> stretches_;
  DeviceArray<float> state_;
  /// The sum of squares of each stretch, if the gradient's norm is clipped.
  DeviceArray<double> squares_;
  DeviceArray<float> factor_;
};

}  // namespace starling::models::cuda
