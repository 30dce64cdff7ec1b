/// Translates a job's settings to and from the form in which nodes receive them, and prepares a job
/// on a node.
#pragma once

#include <string_view>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// True for options that concern only the program that follows a job: nodes write no files, show
/// nothing and evaluate nothing.
[[nodiscard]] bool is_for_follower(std::string_view key);

/// Returns the settings of a job that nodes receive: all but those for which is_for_follower()
/// holds.
[[nodiscard]] wire::JobSettings to_wire(const Settings& settings);
/// Reads the settings that a node received. An Error names an option that nodes do not receive.
[[nodiscard]] Result<Settings> from_wire(const wire::JobSettings& received);

/// Returns the function by which a node prepares a job: it reads the data and makes the model.
/// `registry` outlives that function and the prepared jobs.
[[nodiscard]] actor::JobPreparer job_preparer(const Registry& registry);

}  // namespace starling::program
