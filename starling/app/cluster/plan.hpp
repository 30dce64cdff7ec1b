/// A job's settings on their way between nodes, and what a node makes of them.
#pragma once

#include "starling/app/contents.hpp"
#include "starling/app/settings.hpp"
#include "starling/engine/live/cluster_node.hpp"

namespace starling::app {

/// What nodes are told of a job: all but what concerns who submits it (files, display).
[[nodiscard]] wire::JobSettings to_wire(const Settings& settings);

/// Reads the data and makes the model. `contents` outlives what is made.
[[nodiscard]] live::PlanMaker plan_maker(const Contents& contents);

}  // namespace starling::app
