/// Internal: launches the kernel bodies of kernels/ on the device. For .cu files. A body is a
/// function object that is called once for each index: on the device by for_each(), in tests by a
/// loop on the host, so that the arithmetic is tested without a device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "starling/models/cuda/check.hpp"
#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/kernels/index.hpp"

namespace starling::models::cuda {

inline constexpr unsigned block_threads = 256;
/// Enough blocks to occupy any device. If there are more indices than threads in these blocks, each
/// thread handles several indices.
inline constexpr std::uint64_t blocks_max = 8192;

template <class Body>
__global__ void __launch_bounds__(block_threads) each_kernel(Index size, Body body) {
  // i has 64 bits, because it may exceed 2^32 when the last stride is added.
  const std::uint64_t stride = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; i < size;
       i += stride)
    body(static_cast<Index>(i));
}

/// Launches a kernel that calls body(i) for each i below `size`. Throws Failure, with `action` in
/// its message, if the launch fails. Requires: no two calls write the same element.
template <class Body>
void for_each(const Context& context, std::size_t size, const Body& body, const char* action) {
  if (size == 0) return;
  const auto blocks = std::min((size + block_threads - 1) / block_threads, blocks_max);
  each_kernel<<<static_cast<unsigned>(blocks), block_threads, 0, context.stream().get()>>>(
      static_cast<Index>(size), body);
  check_launch(action);
}

}  // namespace starling::models::cuda
