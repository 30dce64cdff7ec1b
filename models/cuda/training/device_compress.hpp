/// Internal: threshold compression (models/optimizer/gradient_compression.hpp) of a gradient in a
/// device's memory. The residual, the part of the gradients that was not sent, stays there. Chooses
/// the same elements in the same order as the compression on the host. Not thread-safe.
#pragma once

#include <cstddef>

#include "starling/models/cuda/context.hpp"
#include "starling/models/optimizer/gradient_compression.hpp"

namespace starling::models::cuda {

class DeviceCompressor {
 public:
  /// Compresses gradients of `size` elements, with a residual of zeros at first. Throws Failure.
  /// Requires: is_valid(threshold), and `size` is at most threshold_size_max.
  DeviceCompressor(const Threshold& threshold, std::size_t size);

  /// Adds g, which is in the device's memory, to the residual. Returns the elements to send, and
  /// subtracts them from the residual. Blocks the calling thread until they are on the host.
  [[nodiscard]] SparseGradient compress(const Context& context, const float* g);
  /// The residual's address in the device's memory.
  [[nodiscard]] const float* residual() const { return residual_.data(); }

 private:
  Threshold threshold_;
  std::size_t size_;
  DeviceArray<float> residual_;
  /// One number for each block of threads. accumulate_kernel writes how many elements the block
  /// sends; scan_kernel turns this into the index in indices_ of the block's first sent element.
  /// The number after the last block's is the total of sent elements.
  DeviceArray<std::uint32_t> block_starts_;
  DeviceArray<std::uint32_t> indices_;
  DeviceArray<float> values_;
};

}  // namespace starling::models::cuda
