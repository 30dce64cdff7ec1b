/// Decides which members a job on several nodes has, whether each works or owns ranges, and on
/// which node it runs. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::actor {

/// Returns the members that a job of `workers` workers on `nodes` starts with, by id, in
/// incarnation 1:
///  - the workers, assigned to the nodes in turn. In peer mode, the first worker of each node owns
///    ranges too;
///  - servers, each on a node without an owner, until there are `owners` owners or each node has an
///    owner;
///  - on each node that has no member yet, a member that neither works nor owns: it votes, and
///    becomes an owner when owners are too few;
///  - in central mode, on the first node, a member that neither works nor owns: the coordinator.
/// Requires: `workers` and `owners` are positive, and `nodes` is not empty.
[[nodiscard]] std::vector<core::Member> founders(core::Mode mode, std::size_t workers,
                                                 std::size_t owners,
                                                 std::span<const std::uint64_t> nodes);

/// Returns the members that `node` brings into a running job, without ids: `workers` workers, and
/// in central and hybrid mode a server; in peer mode the first worker owns ranges too. Requires:
/// `workers` is positive.
[[nodiscard]] std::vector<core::Member> members_of_newcomer(core::Mode mode, std::uint64_t node,
                                                            std::size_t workers);

/// Returns `members` with new ids and incarnations; fewer members if there are not enough ids. The
/// ids are below `members_max`, and no member of `configuration` has them. Ids of departed members
/// are used only when no others are free. The ids are drawn at random, because nodes that join at
/// the same time do not know of each other: if two new members had the same id, the council would
/// take the second for a restart of the first.
[[nodiscard]] std::vector<core::Member> assign_member_ids(std::vector<core::Member> members,
                                                          const core::Configuration& configuration,
                                                          core::MemberId members_max,
                                                          Random& random);

}  // namespace starling::actor
