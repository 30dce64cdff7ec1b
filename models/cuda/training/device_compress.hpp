/// Internal: threshold compression (models/optimizer/gradient_compression.hpp) of a gradient in a
/// device's memory; the residual stays there. Sends the same elements in the same order as the
/// host's version. One thread at a time.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/optimizer/gradient_compression.hpp"

namespace starling::models::cuda {

class DeviceCompressor {
 public:
  /// For gradients of `size` elements, at most threshold_size_max. Throws Failure. Requires:
  /// is_valid(threshold).
  DeviceCompressor(const Threshold& threshold, std::size_t size);

  /// Compresses g, which is in the device's memory, and waits for the elements to send.
  [[nodiscard]] SparseGradient compress(const Context& context, const float* g);
  /// The residual's address on the device.
  [[nodiscard]] const float* residual() const { return residual_.data(); }

 private:
  Threshold threshold_;
  std::size_t size_;
  DeviceArray<float> residual_;
  /// For each block of threads: first the number of elements that it sends, then the index of the
  /// first of them in indices_. The last number is the number of all sent elements.
  DeviceArray<std::uint32_t> block_starts_;
  DeviceArray<std::uint32_t> indices_;
  DeviceArray<float> values_;
};

}  // namespace starling::models::cuda
