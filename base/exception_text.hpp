/// Texts of exceptions of a user's code. They travel to other nodes, which close a connection that
/// sends a message of many MiB.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

namespace starling {

/// The most bytes of such a text.
inline constexpr std::size_t exception_text_max = 4096;

/// Returns the first `exception_text_max` bytes of the exception's message.
[[nodiscard]] inline std::string exception_text(const std::exception& fault) {
  return std::string{std::string_view{fault.what()}.substr(0, exception_text_max)};
}

}  // namespace starling
