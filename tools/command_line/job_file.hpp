/// Job files: TOML, one `key = value` a line, the keys of keys.hpp; below `[sim]`, the keys of
/// sim/sim_keys.hpp. Blocking.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// The settings of a job file, checked for their names and types. Errors name file and line.
[[nodiscard]] Result<Settings> read_job_file(const std::string& path);
/// The same of what stands in a file; `path` is what errors call it.
[[nodiscard]] Result<Settings> parse_job_file(std::string_view content, const std::string& path);

/// Reads a job file's settings, overridden by those below `[sim]`.
[[nodiscard]] Result<Settings> read_sim_file(const std::string& path);
[[nodiscard]] Result<Settings> parse_sim_file(std::string_view content, const std::string& path);

}  // namespace starling::program
