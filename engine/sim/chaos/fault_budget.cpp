#include "starling/engine/sim/chaos/fault_budget.hpp"

#include <algorithm>
#include <utility>

namespace starling::sim {

FaultBudget::FaultBudget(const Scenario& scenario, const InvariantChecker& checker,
                         std::vector<Condition> conditions, std::vector<std::uint64_t> groups,
                         std::size_t deaths)
    : scenario_(scenario),
      checker_(checker),
      conditions_(std::move(conditions)),
      groups_(std::move(groups)),
      deaths_(deaths) {}

bool FaultBudget::allows_cut(std::uint64_t group) const {
  return keeps_ranges(group, 0) && keeps_ranges(0);
}

bool FaultBudget::allows_parting(std::uint64_t group) const {
  const auto goes_on = [&](std::uint64_t side) {
    if (!has_quorum(*checker_.latest(), everyone & ~side) || !checker_.proposed().empty())
      return false;
    for (core::RangeId r = 0; r < scenario_.ranges; ++r)
      if (!is_held(r, side, 0)) return false;
    return true;
  };
  return deaths_ == 0 && (goes_on(group) || goes_on(everyone & ~group));
}

/// True where `node` runs undisturbed, in the incarnation that the latest and all proposed
/// configurations contain, and no node on `side` suspects it.
bool FaultBudget::is_well(NodeId node, std::uint64_t side) const {
  const Condition& self = conditions_[node];
  if (self.node == nullptr || self.frozen || self.dying || self.suspected || self.leaving)
    return false;
  if (self.node->state() != InvariantChecker::MemberCore::State::member) return false;
  const auto is_member = [&](const core::ConfigurationPtr& known) {
    return known->contains(node, self.node->self().incarnation);
  };
  if (!is_member(checker_.latest()) || !std::ranges::all_of(checker_.proposed(), is_member))
    return false;
  for (NodeId other = 0; other < nodes_max; ++other) {
    const auto* judge = conditions_[other].node;
    if (has(side, other) && judge != nullptr && judge->configuration() && judge->suspects(node))
      return false;
  }
  return true;
}

/// True where `owner` holds all that was acknowledged in `range`, and goes on owning it without a
/// break in every proposed configuration.
bool FaultBudget::holds(core::RangeId range, const core::RangeOwner& owner) const {
  if (checker_.full_owner(range, owner) == nullptr) return false;
  return std::ranges::all_of(checker_.proposed(), [&](const auto& value) {
    const auto* next = value->ranges[range].find(owner.id);
    return next != nullptr && next->since == owner.since;
  });
}

bool FaultBudget::keeps_ranges(std::uint64_t without) const {
  if (groups_.empty()) return keeps_ranges(everyone, without);
  return std::ranges::all_of(groups_,
                             [&](std::uint64_t group) { return keeps_ranges(group, without); });
}

/// Either side of a partition may win in the end and take the others for dead. A side does no harm
/// where it has a good owner of every range, nor where it has no owner at all of some range,
/// because then it waits for the others to come back. Every range needs a good owner on that
/// owner's own side.
bool FaultBudget::keeps_ranges(std::uint64_t group, std::uint64_t without) const {
  bool some_held = true;
  for (const std::uint64_t side : {group, everyone & ~group}) {
    bool waits = false;
    bool all_held = true;
    for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
      const auto& owners = checker_.latest()->ranges[r].owners;
      const bool held = is_held(r, side, without);
      all_held = all_held && held;
      some_held = some_held && (held || is_held(r, everyone & ~side, without));
      waits = waits ||
              std::ranges::none_of(owners, [&](const auto& owner) { return has(side, owner.id); });
    }
    if (!all_held && !waits) return false;
  }
  return some_held;
}

bool FaultBudget::is_held(core::RangeId range, std::uint64_t side, std::uint64_t without) const {
  return std::ranges::any_of(checker_.latest()->ranges[range].owners, [&](const auto& owner) {
    return has(side & ~without, owner.id) && is_well(owner.id, side) && holds(range, owner);
  });
}

bool FaultBudget::keeps_councils(std::uint64_t without) const {
  // The next council may still name a member that died recently, even before it was let in.
  const std::size_t doubtful = deaths_ + 1;
  const auto& latest = *checker_.latest();
  const auto well = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return !has(without, member.id) && is_well(member.id, everyone);
  });
  if (doubtful > core::council_max / 2 || static_cast<std::size_t>(well) <= doubtful) return false;
  return has_quorum(latest, without) &&
         std::ranges::all_of(checker_.proposed(),
                             [&](const auto& value) { return has_quorum(*value, without); });
}

bool FaultBudget::has_quorum(const core::Configuration& configuration,
                             std::uint64_t without) const {
  std::vector<core::MemberId> alive;
  for (const core::MemberId id : configuration.council) {
    const Condition& member = conditions_[id];
    if (member.node != nullptr && !member.dying && !has(without, id) &&
        configuration.contains(id, member.node->self().incarnation))
      alive.push_back(id);
  }
  return core::is_quorum(configuration.council, alive);
}

}  // namespace starling::sim
