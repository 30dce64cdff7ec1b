/// Reads job files: TOML with one `key = value` a line. The keys are those of keys.hpp, and below
/// `[sim]` those of sim/sim_keys.hpp. Blocking.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Reads a job file's settings and checks their names and types. Errors name file and line.
[[nodiscard]] Result<Settings> read_job_file(const std::string& path);
/// The same for the content of a file. Errors name `path`.
[[nodiscard]] Result<Settings> parse_job_file(std::string_view content, const std::string& path);

/// Reads a job file's settings. The keys below `[sim]` replace equal ones above it.
[[nodiscard]] Result<Settings> read_sim_file(const std::string& path);
[[nodiscard]] Result<Settings> parse_sim_file(std::string_view content, const std::string& path);

}  // namespace starling::program
