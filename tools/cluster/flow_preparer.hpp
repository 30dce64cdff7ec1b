/// Converts the settings of a flow to and from the form that is sent to nodes, and prepares a flow
/// on a node.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// In the settings that are sent to nodes, the flow's own options have this prefix.
inline constexpr std::string_view own_option_prefix = "flow.";

/// Returns the settings that are sent to nodes: without those that only the program which follows
/// the job uses, and with the flow's name and the number of its members. `token` is a word that no
/// other job has: 1 to 64 small letters and digits.
[[nodiscard]] wire::JobSettings flow_to_wire(const FlowEntry& flow, const Settings& settings,
                                             const std::string& token);

/// Returns an Error if something has the path of --output, which must be a new folder.
[[nodiscard]] Result<void> check_is_new(const std::string& output);

/// Prepares a flow from the settings that a node received: opens its files, and runs nothing.
[[nodiscard]] Result<std::shared_ptr<const actor::PreparedJob>> prepare_flow(
    const Registry& registry, const wire::JobSettings& received);

}  // namespace starling::program
