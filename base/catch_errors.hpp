/// Turns exceptions, such as those of a user's code, into Errors.
#pragma once

#include <exception>

#include "starling/base/result.hpp"

namespace starling {

/// Returns the Result of `make` or, if it throws, an Error with the exception's text.
template <class Make>
auto catch_errors(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& fault) {
    return Error{fault.what()};
  } catch (...) {
    return Error{"an exception of unknown type"};
  }
}

}  // namespace starling
