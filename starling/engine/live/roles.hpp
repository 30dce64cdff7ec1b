/// Who is who in a job on several nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::live {

/// The founders of a job of `workers` workers on `nodes`, by id, in life 1.
///
/// Workers are dealt to the nodes in turn and have the ids 0, 1, ... In peer mode the first worker
/// of each node owns ranges too. Else servers follow, each on a node of its own: `shards` of them,
/// but as many as there are nodes at most and two at least where there are two nodes; and in
/// central mode the coordinator comes last, on the first node. Requires: workers, nodes and shards
/// > 0.
[[nodiscard]] std::vector<core::Member> founders(core::Mode mode, std::size_t workers,
                                                 std::size_t shards,
                                                 std::span<const std::uint64_t> nodes);

/// The member that keeps the steps: the last of the founders in central mode.
[[nodiscard]] core::WorkerId coordinator_of(const std::vector<core::Member>& founders);

/// What `node` brings into a running job: a worker, and in the modes that have servers one of
/// those. Ids that were never used, as far as `now` tells.
[[nodiscard]] std::vector<core::Member> newcomers(core::Mode mode, const core::Configuration& now,
                                                  std::uint64_t node, core::Incarnation life);

}  // namespace starling::live
