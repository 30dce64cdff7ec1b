/// Internal: tests whether a device can be used at all.
#pragma once

#include <cstddef>

#include "starling/base/result.hpp"

namespace starling::models::cuda {

/// Runs one kernel on the device. Errors begin with "cuda:INDEX: ": no driver or one that is too
/// old, no such device, no code for the device, cuDNN of another major version than this build's.
[[nodiscard]] Result<void> probe(std::size_t index);

}  // namespace starling::models::cuda
