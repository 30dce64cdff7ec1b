/// `submit --flow NAME`, and `attach` to a job that runs a flow. Both return an exit code as
/// tools/train/commands.hpp describes.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns the options of `submit --flow NAME`.
[[nodiscard]] std::vector<KeyDescription> submit_flow_options(const FlowEntry& flow);

/// Submits a flow to the nodes of a cluster, follows it to its end, and prints its result as `run`
/// does. Requires: each setting's key is one of submit_flow_options().
[[nodiscard]] Result<int> submit_flow_command(const Registry& registry, const FlowEntry& flow,
                                              const Settings& settings);

/// Follows a flow in place of the `submit` command that started it, and prints its result. A signal
/// ends this command, not the job. `settings` are those of `attach`.
[[nodiscard]] Result<int> attach_flow(const Registry& registry, Access& access, wire::JobId id,
                                      const JobSnapshot& job, const Settings& settings);

}  // namespace starling::program
