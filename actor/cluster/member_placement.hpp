/// Decides which members a job on a cluster has, whether each works or may own ranges, and on which
/// node it runs. Functions without state; thread-safe if each thread has its own Random.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::actor {

/// Returns the members with which a job of `workers` workers starts on `nodes`, in the order of
/// their ids; `owners` is the number of owners that the job requests. All have incarnation 1:
///  - the workers, assigned to the nodes in turn. In peer mode, the first worker of each node owns
///    ranges too;
///  - servers, each on a node without an owner, until there are `owners` owners or each node has an
///    owner;
///  - on each node that has no member yet, a member that neither works nor owns: it may vote
///    in the council, and becomes an owner when there are too few owners;
///  - in central mode, on the first node, a member that neither works nor owns: the coordinator.
/// Requires: `workers` and `owners` are positive, and `nodes` is not empty.
[[nodiscard]] std::vector<core::Member> initial_members(core::Mode mode, std::size_t workers,
                                                        std::size_t owners,
                                                        std::span<const std::uint64_t> nodes);

/// Returns the members that `node` adds to a running job when it joins: `workers` workers, and in
/// central and hybrid mode a server. In peer mode, the first worker may own ranges too. Ids and
/// incarnations are 0 until assign_member_ids() sets them. Requires: `workers` is positive.
[[nodiscard]] std::vector<core::Member> members_of_joining_node(core::Mode mode, std::uint64_t node,
                                                                std::size_t workers);

/// Returns `members` with new ids and incarnations, both drawn at random; fewer members if there
/// are not enough ids. The ids are below `members_max`, not among `taken`, and no member of
/// `configuration` has them.
/// Ids of departed members are used only when no others are free, with an incarnation above the
/// last one. Nodes that join at the same time do not know of each other: random ids make it
/// unlikely that two new members have the same id. If they had, the council would take the one with
/// the higher incarnation for a restart of the other.
[[nodiscard]] std::vector<core::Member> assign_member_ids(std::vector<core::Member> members,
                                                          const core::Configuration& configuration,
                                                          std::span<const core::MemberId> taken,
                                                          core::MemberId members_max,
                                                          Random& random);

}  // namespace starling::actor
