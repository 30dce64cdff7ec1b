#include "starling/engine/core/council/range_planner.hpp"

#include <algorithm>
#include <optional>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

bool have_same_owners(const Ownership& a, const Ownership& b) {
  return std::ranges::equal(a.owners, b.owners, [](const RangeOwner& x, const RangeOwner& y) {
    return x.id == y.id && x.since == y.since;
  });
}

}  // namespace

std::vector<RangeId> RangePlanner::lost() const {
  std::vector<RangeId> lost;
  for (RangeId r = 0; r < input_.now.size(); ++r)
    if (surviving_owners(r, /*only_full=*/true).empty() && !input_.now[r].owners.empty())
      lost.push_back(r);
  return lost;
}

std::vector<Ownership> RangePlanner::plan() const {
  const std::vector<RangeId> lost_ranges = lost();
  const FinalOwners final_owners = choose_final_owners();
  std::vector<Ownership> next(input_.now.size());
  for (RangeId r = 0; r < next.size(); ++r)
    if (!std::ranges::binary_search(lost_ranges, r))
      next[r].owners = next_owners(r, final_owners[r]);
  balance_primaries(next, final_owners);
  for (RangeId r = 0; r < next.size(); ++r)
    next[r].owner_epoch =
        have_same_owners(input_.now[r], next[r]) ? input_.now[r].owner_epoch : input_.next_epoch;
  return next;
}

bool RangePlanner::is_full_owner(RangeId range, MemberId id) const {
  return range < input_.full.size() && is_among(input_.full[range], id) && input_.survives(id);
}

std::vector<RangeOwner> RangePlanner::surviving_owners(RangeId range, bool only_full) const {
  std::vector<RangeOwner> alive;
  for (const RangeOwner& owner : input_.now[range].owners)
    if (input_.survives(owner.id) && (!only_full || is_full_owner(range, owner.id)))
      alive.push_back(owner);
  return alive;
}

/// Chooses the final owners of each range: those that it has once all moves are done. Keeps present
/// owners, unless loads would then differ by more than one range.
RangePlanner::FinalOwners RangePlanner::choose_final_owners() const {
  FinalOwners final_owners(input_.now.size());
  const std::size_t owners_each = std::min(input_.replication_factor, input_.eligible.size());
  RangeLoads loads{input_.eligible};
  for (RangeId r = 0; r < final_owners.size(); ++r) {
    for (const RangeOwner& owner : surviving_owners(r, /*only_full=*/false))
      if (!owner.retiring && is_among(input_.eligible, owner.id) &&
          final_owners[r].size() < owners_each)
        final_owners[r].push_back(owner.id);
    for (const MemberId id : final_owners[r]) loads.add(id);
  }
  if (input_.eligible.empty()) return final_owners;
  for (RangeId r = 0; r < final_owners.size(); ++r)
    while (final_owners[r].size() < owners_each) {
      final_owners[r].push_back(choose_owner(r, final_owners[r], loads));
      loads.add(final_owners[r].back());
    }
  while (loads.load_of(loads.most_loaded()) > loads.load_of(loads.least_loaded()) + 1)
    move_one_range(final_owners, loads);
  return final_owners;
}

/// Returns the least loaded eligible member that is not a final owner of `range` yet; among
/// equals, one that owns the range now.
MemberId RangePlanner::choose_owner(RangeId range, const std::vector<MemberId>& chosen,
                                    const RangeLoads& loads) const {
  std::optional<MemberId> best;
  const auto rank = [&](MemberId id) {
    return std::pair{loads.load_of(id),
                     input_.now[range].find(id) == nullptr || !input_.survives(id)};
  };
  for (const MemberId id : input_.eligible)
    if (!is_among(chosen, id) && (!best || rank(id) < rank(*best))) best = id;
  STARLING_CHECK(best);
  return *best;
}

/// Moves one range from the most to the least loaded member. Prefers a range of which the most
/// loaded member is not the primary.
void RangePlanner::move_one_range(FinalOwners& final_owners, RangeLoads& loads) const {
  const MemberId from = loads.most_loaded();
  const MemberId to = loads.least_loaded();
  std::optional<RangeId> chosen;
  for (RangeId r = 0; r < final_owners.size(); ++r) {
    if (!is_among(final_owners[r], from) || is_among(final_owners[r], to)) continue;
    const auto& owners = input_.now[r].owners;
    const bool keeps_primary = owners.empty() || owners.front().id != from;
    if (!chosen || keeps_primary) chosen = r;
    if (keeps_primary) break;
  }
  STARLING_CHECK(chosen);
  std::ranges::replace(final_owners[*chosen], from, to);
  loads.remove(from);
  loads.add(to);
}

/// True if all final owners of the range are full.
bool RangePlanner::is_settled(RangeId range, const std::vector<MemberId>& final_owners) const {
  return std::ranges::all_of(final_owners, [&](MemberId id) { return is_full_owner(range, id); });
}

/// Returns the owners of `range` in the next epoch: the primary, then the other present owners in
/// their order, then the new ones.
std::vector<RangeOwner> RangePlanner::next_owners(RangeId range,
                                                  const std::vector<MemberId>& final_owners) const {
  if (input_.now[range].owners.empty()) return {};
  std::vector<RangeOwner> owners;
  for (RangeOwner owner : surviving_owners(range, /*only_full=*/false)) {
    owner.retiring = !is_among(final_owners, owner.id);
    if (!owner.retiring || !is_settled(range, final_owners)) owners.push_back(owner);
  }
  for (const MemberId id : final_owners)
    if (std::ranges::find(owners, id, &RangeOwner::id) == owners.end())
      owners.push_back({id, input_.next_epoch, false});
  // The current primary stays primary. If it is gone, a full owner becomes primary, preferably
  // one that is not retiring.
  const auto rank = [&](const RangeOwner& owner) {
    if (!is_full_owner(range, owner.id)) return 3;
    if (owner.id == input_.now[range].owners.front().id) return 0;
    return owner.retiring ? 2 : 1;
  };
  if (owners.empty()) return owners;
  const auto primary = std::ranges::min_element(owners, {}, rank);
  std::rotate(owners.begin(), primary, primary + 1);
  return owners;
}

/// Balances the numbers of ranges of which members are primary. Changes only settled ranges.
void RangePlanner::balance_primaries(std::vector<Ownership>& next,
                                     const FinalOwners& final_owners) const {
  RangeLoads loads{input_.eligible};
  for (const Ownership& range : next)
    if (!range.owners.empty() && loads.contains(range.owners.front().id))
      loads.add(range.owners.front().id);
  for (bool moved = true; moved;) {
    moved = false;
    for (RangeId r = 0; r < next.size(); ++r) {
      auto& owners = next[r].owners;
      if (owners.size() < 2 || !is_settled(r, final_owners[r]) ||
          !loads.contains(owners.front().id))
        continue;
      const auto least = std::ranges::min_element(
          owners, {}, [&](const RangeOwner& owner) { return loads.load_of(owner.id); });
      if (loads.load_of(owners.front().id) < loads.load_of(least->id) + 2) continue;
      loads.remove(owners.front().id);
      loads.add(least->id);
      std::rotate(owners.begin(), least, least + 1);
      moved = true;
    }
  }
}

}  // namespace starling::core
