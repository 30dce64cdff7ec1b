/// A job's settings on their way between nodes, and what a node makes of them.
#pragma once

#include <string_view>

#include "starling/app/registry.hpp"
#include "starling/app/settings.hpp"
#include "starling/engine/live/cluster_node.hpp"

namespace starling::app {

/// Keys that concern whoever follows a job: nodes write no files, show nothing and evaluate
/// nothing.
[[nodiscard]] bool is_for_follower(std::string_view key);

/// How long the job waits for nodes that it cannot go on without. Requires: settings that were
/// read.

/// What nodes are told of a job: all but those.
[[nodiscard]] wire::JobSettings to_wire(const Settings& settings);
/// An Error names a key that is none of them.
[[nodiscard]] Result<Settings> from_wire(const wire::JobSettings& told);

/// Reads the data and makes the model. `registry` outlives what is made.
[[nodiscard]] live::PlanMaker plan_maker(const Registry& registry);

}  // namespace starling::app
