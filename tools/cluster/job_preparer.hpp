/// A job's settings on their way between nodes, and what a node makes of them.
#pragma once

#include <string_view>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// True for keys that concern the follower of a job: nodes write no files, show nothing and
/// evaluate nothing.
[[nodiscard]] bool is_for_follower(std::string_view key);

/// Returns the settings of a job that nodes receive: all but those for its follower.
[[nodiscard]] wire::JobSettings to_wire(const Settings& settings);
/// Reads the settings that a node received. An Error names a key that nodes do not receive.
[[nodiscard]] Result<Settings> from_wire(const wire::JobSettings& told);

/// Reads the data and makes the model. `registry` outlives what is made.
[[nodiscard]] actor::JobPreparer job_preparer(const Registry& registry);

}  // namespace starling::program
