#include "starling/engine/sim/chaos/fault_budget.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace starling::sim {

FaultBudget::FaultBudget(const Scenario& scenario, const InvariantChecker& checker,
                         std::vector<NodeCondition> conditions, std::vector<NodeSet> groups,
                         std::size_t deaths)
    : scenario_(scenario),
      checker_(checker),
      conditions_(std::move(conditions)),
      groups_(std::move(groups)),
      deaths_(deaths) {}

bool FaultBudget::allows_partition(NodeSet group) const {
  FaultBudget with_group = *this;
  with_group.groups_.push_back(group);
  return with_group.ranges_survive_without(0);
}

bool FaultBudget::allows_lasting_partition(NodeSet group) const {
  const auto can_go_on = [&](NodeSet side) {
    if (!has_quorum(*checker_.latest(), all_nodes & ~side) || !checker_.proposed().empty())
      return false;
    for (core::RangeId r = 0; r < scenario_.ranges; ++r)
      if (!has_safe_owner(r, side, 0)) return false;
    return true;
  };
  return deaths_ == 0 && (can_go_on(group) || can_go_on(all_nodes & ~group));
}

/// Returns true if `node` runs without a fault, if the latest and all proposed configurations
/// contain its incarnation, and if no node on `side` suspects it.
bool FaultBudget::is_healthy(NodeId node, NodeSet side) const {
  const NodeCondition& self = conditions_[node];
  if (self.core == nullptr || self.frozen || self.dying || self.suspected || self.leaving)
    return false;
  if (self.core->state() != InvariantChecker::MemberCore::State::member) return false;
  const auto is_member = [&](const core::ConfigurationPtr& known) {
    return known->contains(node, self.core->self().incarnation);
  };
  if (!is_member(checker_.latest()) || !std::ranges::all_of(checker_.proposed(), is_member))
    return false;
  for (NodeId other = 0; other < nodes_max; ++other) {
    const auto* observer = conditions_[other].core;
    if (contains(side, other) && observer != nullptr && observer->configuration() &&
        observer->suspects(node))
      return false;
  }
  return true;
}

/// Returns true if `owner` holds every acknowledged update of `range`, and goes on owning the range
/// without a break in every proposed configuration.
bool FaultBudget::keeps_all_updates(core::RangeId range, const core::RangeOwner& owner) const {
  if (checker_.full_owner(range, owner) == nullptr) return false;
  return std::ranges::all_of(checker_.proposed(), [&](const auto& value) {
    const auto holders = checker_.holders(*value, range);
    const auto next = std::ranges::find(holders, owner.id, &core::RangeOwner::id);
    return next != holders.end() && next->since == owner.since;
  });
}

/// Either side of a partition can be declared dead while other partitions last. So for each
/// partition, the smaller sides of the other partitions count as failed.
bool FaultBudget::ranges_survive_without(NodeSet without) const {
  if (groups_.empty()) return ranges_survive_partition(all_nodes, without);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    NodeSet failed = without;
    for (std::size_t other = 0; other < groups_.size(); ++other)
      if (other != i && groups_[other] != groups_[i]) failed |= smaller_side(groups_[other]);
    if (!ranges_survive_partition(groups_[i], failed)) return false;
  }
  return true;
}

/// Returns the side of a partition that has fewer members of the latest configuration.
NodeSet FaultBudget::smaller_side(NodeSet group) const {
  const auto& members = checker_.latest()->members;
  const auto inside = std::ranges::count_if(
      members, [&](const core::Member& member) { return contains(group, member.id); });
  return 2 * static_cast<std::size_t>(inside) <= members.size() ? group : all_nodes & ~group;
}

/// Returns true if no update is lost when `group` is partitioned from the others and the nodes in
/// `without` fail. Either side may then go on and declare the other side dead. A side can go on
/// without loss if it has a safe owner of every range. A side that has no owner at all of some
/// range cannot go on: it waits for the other side. Every range needs a safe owner on one of the
/// sides.
bool FaultBudget::ranges_survive_partition(NodeSet group, NodeSet without) const {
  bool is_every_range_safe = true;
  for (const NodeSet side : {group, all_nodes & ~group}) {
    bool must_wait = false;
    bool is_side_safe = true;
    for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
      const auto owners = checker_.holders(*checker_.latest(), r);
      const bool is_safe = has_safe_owner(r, side, without);
      is_side_safe = is_side_safe && is_safe;
      is_every_range_safe =
          is_every_range_safe && (is_safe || has_safe_owner(r, all_nodes & ~side, without));
      must_wait = must_wait || std::ranges::none_of(owners, [&](const auto& owner) {
                    return contains(side, owner.id);
                  });
    }
    if (!is_side_safe && !must_wait) return false;
  }
  return is_every_range_safe;
}

/// Returns true if a node on `side` and not in `without` is healthy, keeps all updates of `range`
/// and has the optimizer's state for the range, and if the range goes on having such a node: a node
/// drops the state once the nodes that its configuration names for this state have received it.
/// While a range moves, it has more owners than the replication factor. The next configuration
/// keeps only as many owners as this factor, and may keep owners that have failed if no member
/// suspects them yet. So the number of failed owners must be below the replication factor.
bool FaultBudget::has_safe_owner(core::RangeId range, NodeSet side, NodeSet without) const {
  const auto runs = [&](const core::RangeOwner& owner) {
    return contains(side & ~without, owner.id) && is_healthy(owner.id, side);
  };
  const auto owners = checker_.holders(*checker_.latest(), range);
  if (core::exchange_type(scenario_.exchange).places_ranges &&
      owners.size() > scenario_.replication_factor &&
      std::ranges::count_if(owners, std::not_fn(runs)) >= scenario_.replication_factor)
    return false;
  const auto goes_on_having_state = [&](const core::ConfigurationPtr& configuration) {
    return std::ranges::any_of(owners, [&](const auto& owner) {
      return runs(owner) && checker_.oracle().keeps_state(*configuration, owner.id, range);
    });
  };
  if (!goes_on_having_state(checker_.latest()) ||
      !std::ranges::all_of(checker_.proposed(), goes_on_having_state))
    return false;
  return std::ranges::any_of(owners, [&](const auto& owner) {
    return runs(owner) && keeps_all_updates(range, owner) &&
           checker_.oracle().has_state(*conditions_[owner.id].core, range);
  });
}

/// Returns true if the latest and all proposed councils, and the next one, keep a majority when the
/// nodes in `without` fail.
bool FaultBudget::councils_survive_without(NodeSet without) const {
  // The next council may still name the members that died recently, and one more that dies before
  // it has joined.
  const std::size_t dead = deaths_ + 1;
  const auto& latest = *checker_.latest();
  const auto healthy = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return !contains(without, member.id) && is_healthy(member.id, all_nodes);
  });
  if (dead > core::council_max / 2 || static_cast<std::size_t>(healthy) <= dead) return false;
  return has_quorum(latest, without) &&
         std::ranges::all_of(checker_.proposed(),
                             [&](const auto& value) { return has_quorum(*value, without); });
}

bool FaultBudget::has_quorum(const core::Configuration& configuration, NodeSet without) const {
  std::vector<core::MemberId> alive;
  for (const core::MemberId id : configuration.council) {
    const NodeCondition& member = conditions_[id];
    if (member.core != nullptr && !member.dying && !contains(without, id) &&
        configuration.contains(id, member.core->self().incarnation))
      alive.push_back(id);
  }
  return core::is_quorum(configuration.council, alive);
}

}  // namespace starling::sim
