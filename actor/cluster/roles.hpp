/// The roles of the members of a job on several nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::actor {

/// The founders of a job of `workers` workers on `nodes`, by id, in incarnation 1.
///
/// Workers are dealt to the nodes in turn and have the ids 0, 1, ... In peer mode the first worker
/// of each node owns ranges too. Servers follow, each on a node without an owner, until `owners`
/// members own or each node has one that does. Then a member that neither works nor owns comes to
/// each node that has none yet, to vote and to become an owner when one is missing. In central mode
/// such a member comes last, on the first node: the first coordinator.
/// Requires: workers, nodes and owners > 0.
[[nodiscard]] std::vector<core::Member> founders(core::Mode mode, std::size_t workers,
                                                 std::size_t owners,
                                                 std::span<const std::uint64_t> nodes);

/// The members that `node` brings into a running job: `workers` workers, of which in peer mode the
/// first owns ranges too; in other modes a server too. They have no ids. Requires: workers > 0.
[[nodiscard]] std::vector<core::Member> roles_of_newcomer(core::Mode mode, std::uint64_t node,
                                                          std::size_t workers);

/// Returns `roles` in new incarnations, with ids below `members_max` that no member of
/// `configuration` has or, as long as there are such ids, ever had; fewer roles where the ids run
/// out. The ids are drawn at random: nodes that join at the same time do not know of each other,
/// and where two new members have one id, the council takes the second for a restart of the first.
[[nodiscard]] std::vector<core::Member> newcomers(std::vector<core::Member> roles,
                                                  const core::Configuration& configuration,
                                                  core::MemberId members_max, Random& random);

}  // namespace starling::actor
