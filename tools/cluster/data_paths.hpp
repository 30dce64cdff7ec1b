/// Paths in the settings of a job: all of its nodes read a file by the same path, which therefore
/// must be absolute.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/membership/membership_message.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Returns a data source with each of its files replaced by `path_of(file)`; the same text if that
/// changes no file. The files of a source that is not built in are the existing files among
/// its leading options, before the first `KEY=VALUE`.
[[nodiscard]] std::string with_files(const std::string& source,
                                     std::string (*path_of)(const std::string& file));

/// Returns a job's settings with the paths that are relative to this program's working folder made
/// absolute, as its nodes receive them. Returns an Error if there are such paths and a live node is
/// on another machine.
[[nodiscard]] Result<Settings> with_absolute_paths(Settings settings,
                                                   const std::vector<core::NodeRecord>& nodes);

}  // namespace starling::program
