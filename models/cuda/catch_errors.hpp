/// Internal: turns exceptions, such as Failure, into Errors.
#pragma once

#include <exception>
#include <string>

#include "starling/base/result.hpp"

namespace starling::models::cuda {

/// Returns the device's name for users: "cuda:0".
[[nodiscard]] inline std::string device_name(std::size_t index) {
  return "cuda:" + std::to_string(index);
}

/// Calls `work` and returns its result. If `work` throws, returns an Error that begins with the
/// name of device `index`.
template <class Work>
[[nodiscard]] auto catch_errors(std::size_t index, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& failure) {
    return Error{device_name(index) + ": " + failure.what()};
  }
}

}  // namespace starling::models::cuda
