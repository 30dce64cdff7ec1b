/// Internal: threshold compression (models/optimizer/gradient_compression.hpp) of a gradient that
/// lies on a device; the residual stays there. Sends the same elements in the same order as on the
/// host. One thread at a time.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/optimizer/gradient_compression.hpp"

namespace starling::models::cuda {

class DeviceCompressor {
 public:
  /// For gradients of `size` elements, at most threshold_size_max. Throws Failure. Requires:
  /// is_valid(how).
  DeviceCompressor(const Threshold& how, std::size_t size);

  /// Compresses g, which lies on the device; waits for the sent elements.
  [[nodiscard]] SparseGradient compress(const Context& context, const float* g);
  /// The residual's address on the device.
  [[nodiscard]] const float* residual() const { return residual_.data(); }

 private:
  Threshold how_;
  std::size_t size_;
  DeviceArray<float> residual_;
  /// For each block: first the number of elements that it sends, then the place of its first one;
  /// behind the last block, the number of all sent elements.
  DeviceArray<std::uint32_t> places_;
  DeviceArray<std::uint32_t> indices_;
  DeviceArray<float> values_;
};

}  // namespace starling::models::cuda
