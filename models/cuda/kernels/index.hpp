/// Internal: the type of the index with which kernel bodies (launch.hpp) are called.
#pragma once

#include <cstdint>

namespace starling::models::cuda {

/// The index of an element in a tensor of one micro-batch; it is below 2^31.
using Index = std::uint32_t;

}  // namespace starling::models::cuda
