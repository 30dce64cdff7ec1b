/// TOML as people write it, read by toml11, whose dangers stay in here. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <toml.hpp>

#include "starling/base/result.hpp"

namespace starling::app {

/// The content of the file `path` as TOML. Errors name the file and the line, and call a file that
/// is too much for toml11 no `what`, such as "a job file of `key = value` lines".
[[nodiscard]] Result<toml::value> parse_toml(std::string_view content, const std::string& path,
                                             const std::string& what);

}  // namespace starling::app
