/// Internal: turns a Failure, or any other exception, into an Error.
#pragma once

#include <exception>
#include <string>

#include "starling/base/result.hpp"

namespace starling::models::cuda {

/// Returns the device's name for users: "cuda:0".
[[nodiscard]] inline std::string name_of(std::size_t index) {
  return "cuda:" + std::to_string(index);
}

/// Calls `work` and returns its result. If it throws, returns an Error that begins with the
/// device's name.
template <class Work>
[[nodiscard]] auto catch_errors(std::size_t index, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& failure) {
    return Error{name_of(index) + ": " + failure.what()};
  }
}

}  // namespace starling::models::cuda
