/// Internal: tests whether a device can be used.
#pragma once

#include <cstddef>

#include "starling/base/result.hpp"

namespace starling::models::cuda {

/// Runs one kernel on device `index`. Returns an Error, which begins with "cuda:INDEX: ", if
/// - the driver is missing or too old, or there is no such device,
/// - this build has no code for the device,
/// - the loaded cuDNN has another major version than this build's,
/// - a call of CUDA fails for another reason.
[[nodiscard]] Result<void> probe(std::size_t index);

}  // namespace starling::models::cuda
