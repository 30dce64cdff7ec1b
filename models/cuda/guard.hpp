/// Internal: turns a Failure, or any other exception, into an Error.
#pragma once

#include <exception>
#include <string>

#include "starling/base/result.hpp"

namespace starling::models::cuda {

/// "cuda:0".
[[nodiscard]] inline std::string name_of(std::size_t index) {
  return "cuda:" + std::to_string(index);
}

/// Returns the result of `work`, or the exception that it threw as an Error, led by the device's
/// name.
template <class Work>
[[nodiscard]] auto guarded(std::size_t index, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& failure) {
    return Error{name_of(index) + ": " + failure.what()};
  }
}

}  // namespace starling::models::cuda
