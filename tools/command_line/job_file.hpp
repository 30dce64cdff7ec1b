/// Reads job files: TOML with one `key = value` per line. The keys are those of job/keys.hpp, and
/// below `[sim]` those of sim/sim_keys.hpp. Blocking.
#pragma once

#include <string>
#include <string_view>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Reads a job file's settings without those below `[sim]`, and checks the names and types of all.
/// Errors name file and line.
[[nodiscard]] Result<Settings> read_job_file(const std::string& path);
/// The same for the content of a file. Errors name `path`.
[[nodiscard]] Result<Settings> parse_job_file(std::string_view content, const std::string& path);

/// Reads all settings of a job file. A setting below `[sim]` overrides the one of the same key
/// above.
[[nodiscard]] Result<Settings> read_sim_file(const std::string& path);
[[nodiscard]] Result<Settings> parse_sim_file(std::string_view content, const std::string& path);

}  // namespace starling::program
