/// Internal: the index with which a kernel body is called. A body is a function object that is
/// called for each index from 0 to a size: on the device by for_each() of launch.hpp, in tests by a
/// loop on the host, so that the arithmetic is tested without a device. No two calls of one launch
/// write the same element.
#pragma once

#include <cstdint>

#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// The index of an element in a tensor of one micro-batch; it is below 2^31.
using Index = std::uint32_t;

}  // namespace starling::models::cuda
