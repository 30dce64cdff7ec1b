/// Makes the paths in a job's settings absolute, because all nodes of the job read a file by the
/// same path, and their working folders differ. Blocking.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/membership/membership_message.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Returns the data source `source` with each of its files replaced by `path_of(file)`; the same
/// text if no file changes. For a source that is not built in, the options before the first
/// `KEY=VALUE` that name an existing file count as its files.
[[nodiscard]] std::string with_files(const std::string& source,
                                     std::string (*path_of)(const std::string& file));

/// Returns a job's settings with all relative paths made absolute, from this program's working
/// folder. Returns an Error if there is a relative path and a live node of `nodes` is on another
/// machine, where that path may name another file.
[[nodiscard]] Result<Settings> with_absolute_paths(Settings settings,
                                                   const std::vector<core::NodeRecord>& nodes);
/// The same for settings of a flow: if `is_path` returns true for a setting, its whole text is a
/// path; else it has no path.
[[nodiscard]] Result<Settings> with_absolute_paths(
    Settings settings, const std::vector<core::NodeRecord>& nodes,
    const std::function<bool(const Setting&)>& is_path);

}  // namespace starling::program
