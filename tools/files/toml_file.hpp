/// Parses TOML with toml++, and rewrites its errors for users. Thread-safe.
#pragma once

#include <toml++/toml.h>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::program {

/// Parses `content` as TOML. Errors name `path` and the line. `valid` describes the expected file
/// in the error for a line with too many dots, such as "a job file of `key = value` lines".
[[nodiscard]] Result<toml::table> parse_toml(std::string_view content, const std::string& path,
                                             const std::string& valid);

/// Returns the line on which a value begins. Lines count from 1.
[[nodiscard]] inline std::size_t line_of(const toml::node& value) {
  return value.source().begin.line;
}

}  // namespace starling::program
