/// Internal: the types and marks in which the bodies of kernels are written. A body is a value that
/// is called with each index of its range, on the device by launch.hpp, in tests by a loop on the
/// host, so that the arithmetic is tested where there is no device. Bodies of one launch never
/// write the same number.
#pragma once

#include <cstdint>

#include "starling/models/kernels/host_device.hpp"

namespace starling::models::cuda {

/// Counts the numbers in one tensor of one piece of a batch, which are fewer than 2^31.
using Index = std::uint32_t;

}  // namespace starling::models::cuda
