/// Files that a job names, which each of its nodes reads by the same path.
#pragma once

#include <string>
#include <vector>

#include "starling/app/settings.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/membership_message.hpp"

namespace starling::app {

/// A data source with each of its files as `absolute(file)` gives it, and as it was written where
/// that changes none. Of a source that is not built in those words are files that lead its options
/// and exist.
[[nodiscard]] std::string with_files(const std::string& source,
                                     std::string (*absolute)(const std::string& file));

/// The settings of a job as its nodes are told them: what is relative to where this program stands
/// made absolute. An Error where a node is on another machine, which stands elsewhere.
[[nodiscard]] Result<Settings> with_absolute_paths(Settings settings,
                                                   const std::vector<core::NodeRecord>& nodes);

}  // namespace starling::app
