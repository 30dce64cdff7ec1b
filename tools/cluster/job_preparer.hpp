/// Converts a job's settings to and from the form that is sent to nodes, and prepares a job on a
/// node.
#pragma once

#include <string_view>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns true for options that only the program that follows a job uses, such as `save`: nodes
/// save and show nothing, and evaluate a model only when that program asks them to.
[[nodiscard]] bool is_for_follower(std::string_view key);

/// Returns the settings that are sent to nodes: all but those for which is_for_follower() returns
/// true.
[[nodiscard]] wire::JobSettings to_wire(const Settings& settings);
/// Converts the settings that a node received. Returns an Error if one is not an option of a job,
/// or is one that is never sent to nodes.
[[nodiscard]] Result<Settings> from_wire(const wire::JobSettings& received);

/// Returns the function that a node calls to prepare a job. For training, that function reads the
/// data and makes the model; for a flow, it opens the files (flow_preparer.hpp). Requires:
/// `registry` outlives the function and the prepared jobs.
[[nodiscard]] actor::JobPreparer job_preparer(const Registry& registry);

}  // namespace starling::program
