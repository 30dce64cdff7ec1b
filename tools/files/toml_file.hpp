/// TOML as people write it, read by toml++. Any thread.
#pragma once

#include <toml++/toml.h>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::program {

/// The content of the file `path` as TOML. Errors name the file and the line; `what` says what the
/// file should be, such as "a job file of `key = value` lines".
[[nodiscard]] Result<toml::table> parse_toml(std::string_view content, const std::string& path,
                                             const std::string& what);

/// The line in which a value of a file begins; lines count from 1.
[[nodiscard]] inline std::size_t line_of(const toml::node& value) {
  return value.source().begin.line;
}

}  // namespace starling::program
