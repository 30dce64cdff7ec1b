/// Files that a job names, which each of its nodes reads by the same path.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/membership/membership_message.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Returns a data source with each of its files as `absolute(file)` gives it, and unchanged where
/// that changes no file. The files of a source that is not built in are the existing files among
/// its leading options, before the first `KEY=VALUE`.
[[nodiscard]] std::string with_files(const std::string& source,
                                     std::string (*absolute)(const std::string& file));

/// Returns a job's settings as its nodes receive them, with paths relative to this program's folder
/// made absolute. An Error where there are such paths and a live node is on another machine.
[[nodiscard]] Result<Settings> with_absolute_paths(Settings settings,
                                                   const std::vector<core::NodeRecord>& nodes);

}  // namespace starling::program
