#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "starling/base/check.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/council/range_loads.hpp"

namespace starling::core {
namespace {

/// True if one of `ids` runs on the node of `member`.
bool shares_node(const Member& member, std::span<const MemberId> ids,
                 const std::vector<Member>& members) {
  return member.node != 0 && std::ranges::any_of(ids, [&](MemberId id) {
           const auto other = std::ranges::find(members, id, &Member::id);
           return other != members.end() && other->node == member.node;
         });
}

/// Chooses the coordinator: the member with the lowest `rank`; among equals, one that neither works
/// nor may own ranges; among these, the one with the lowest id.
template <class Rank>
MemberId choose_coordinator(const std::vector<Member>& members, Rank rank) {
  STARLING_CHECK(!members.empty());
  return std::ranges::min_element(
             members, {},
             [&](const Member& member) {
               return std::tuple{rank(member), member.works || member.owns, member.id};
             })
      ->id;
}

/// Plans the configuration after `now`. Each object serves one call of plan().
class ConfigurationPlanner {
 public:
  ConfigurationPlanner(const Configuration& now, const PendingChanges& pending)
      : now_(now), pending_(pending) {
    gather_members();
    final_owners_.resize(now.ranges.size());
  }

  Successor plan() {
    Successor result;
    result.lost = lost_ranges();
    if (members_.empty() || (!result.lost.empty() && !pending_.gives_up_lost_ranges)) return result;
    choose_final_owners();
    auto next = std::make_shared<Configuration>();
    next->epoch = now_.epoch + 1;
    next->ranges.resize(now_.ranges.size());
    for (RangeId r = 0; r < now_.ranges.size(); ++r)
      next->ranges[r].owners = next_owners(r, is_among(result.lost, r));
    balance_primaries(*next);
    remove_leavers(*next);
    next->members = members_;
    next->departed = departed();
    next->members_since = next->has_same_members_as(now_) ? now_.members_since : next->epoch;
    next->council = council();
    next->coordinator = coordinator();
    const bool workers_change = pending_.bsp && workers_of(now_.members) != workers_of(members_);
    for (RangeId r = 0; r < now_.ranges.size(); ++r)
      next->ranges[r].owner_epoch =
          !workers_change && have_same_owners(now_.ranges[r], next->ranges[r])
              ? now_.ranges[r].owner_epoch
              : next->epoch;
    const bool is_change = next->members != now_.members || next->council != now_.council ||
                           next->ranges != now_.ranges;
    if (is_change) result.next = std::move(next);
    return result;
  }

 private:
  /// Returns the ranges that no surviving member holds.
  [[nodiscard]] std::vector<RangeId> lost_ranges() const {
    std::vector<RangeId> lost;
    for (RangeId r = 0; r < now_.ranges.size(); ++r)
      if (surviving_owners(r, /*only_full=*/true).empty() && !now_.ranges[r].owners.empty())
        lost.push_back(r);
    for (RangeId r = 0; r < pending_.unplaced_ranges; ++r)
      if (std::ranges::none_of(pending_.held, [&](const auto& report) {
            return survives(report.first) && std::ranges::binary_search(report.second, r);
          }))
        lost.push_back(r);
    return lost;
  }

  static std::vector<Member> workers_of(const std::vector<Member>& members) {
    std::vector<Member> workers;
    std::ranges::copy_if(members, std::back_inserter(workers), &Member::works);
    return workers;
  }

  static bool have_same_owners(const Ownership& a, const Ownership& b) {
    return std::ranges::equal(a.owners, b.owners, [](const RangeOwner& x, const RangeOwner& y) {
      return x.id == y.id && x.since == y.since;
    });
  }

  /// Determines the members of the next configuration, and which of them are eligible as owners.
  void gather_members() {
    for (const Member& member : now_.members)
      if (survives(member.id)) members_.push_back(member);
    for (const Member& joiner : pending_.joins) {
      const auto position = std::ranges::lower_bound(members_, joiner.id, {}, &Member::id);
      if (position != members_.end() && position->id == joiner.id) continue;  // is a member already
      if (!now_.is_or_was_member(joiner.id, joiner.incarnation)) members_.insert(position, joiner);
    }
    for (const Member& member : members_)
      if (member.owns && !is_among(pending_.leaves, member.id)) eligible_.push_back(member.id);
    add_eligible_owners();
    // A leaving member stays eligible while fewer than `replication_factor` others are.
    for (const Member& member : members_)
      if (member.owns && eligible_.size() < pending_.replication_factor &&
          !is_among(eligible_, member.id))
        eligible_.push_back(member.id);
    std::ranges::sort(eligible_);
  }

  /// Lets more members own ranges, on nodes without an eligible member. Prefers members that are
  /// not on the coordinator's node, then members that do not work, then the lowest ids.
  void add_eligible_owners() {
    std::vector<MemberId> coordinators;
    if (now_.coordinator) coordinators.push_back(*now_.coordinator);
    const std::size_t owner_count = std::max(pending_.owners, pending_.replication_factor);
    while (eligible_.size() < owner_count) {
      std::vector<Member*> candidates;
      for (Member& member : members_)
        if (!member.owns && !is_among(pending_.leaves, member.id) &&
            !shares_node(member, eligible_, members_))
          candidates.push_back(&member);
      if (candidates.empty()) return;
      Member& chosen = **std::ranges::min_element(candidates, {}, [&](const Member* member) {
        return std::tuple{
            is_among(coordinators, member->id) || shares_node(*member, coordinators, now_.members),
            member->works, member->id};
      });
      chosen.owns = true;
      eligible_.push_back(chosen.id);
    }
  }

  /// True if the member's present incarnation is neither suspected nor replaced by a later one.
  [[nodiscard]] bool survives(MemberId id) const {
    const Member* member = now_.find(id);
    if (member == nullptr || is_among(pending_.dead, id)) return false;
    return std::ranges::none_of(pending_.joins, [&](const Member& joiner) {
      return joiner.id == id && joiner.incarnation > member->incarnation;
    });
  }
  [[nodiscard]] bool is_eligible(MemberId id) const { return is_among(eligible_, id); }
  [[nodiscard]] bool is_full_owner(RangeId range, MemberId id) const {
    return range < pending_.full.size() && is_among(pending_.full[range], id) && survives(id);
  }

  [[nodiscard]] std::vector<RangeOwner> surviving_owners(RangeId range, bool only_full) const {
    std::vector<RangeOwner> alive;
    for (const RangeOwner& owner : now_.ranges[range].owners)
      if (survives(owner.id) && (!only_full || is_full_owner(range, owner.id)))
        alive.push_back(owner);
    return alive;
  }

  /// Chooses the final owners of each range, which it has once all moves are done. Keeps present
  /// owners, unless loads would then differ by more than one range.
  void choose_final_owners() {
    const std::size_t owners_each = std::min(pending_.replication_factor, eligible_.size());
    RangeLoads loads{eligible_};
    for (RangeId r = 0; r < final_owners_.size(); ++r) {
      for (const RangeOwner& owner : surviving_owners(r, /*only_full=*/false))
        if (!owner.retiring && is_eligible(owner.id) && final_owners_[r].size() < owners_each)
          final_owners_[r].push_back(owner.id);
      for (const MemberId id : final_owners_[r]) loads.add(id);
    }
    if (eligible_.empty()) return;
    for (RangeId r = 0; r < final_owners_.size(); ++r)
      while (final_owners_[r].size() < owners_each) {
        final_owners_[r].push_back(choose_owner(r, loads));
        loads.add(final_owners_[r].back());
      }
    while (loads.load_of(loads.most_loaded()) > loads.load_of(loads.least_loaded()) + 1)
      move_one_range(loads);
  }

  /// Returns the least loaded eligible member that is not a final owner of `range` yet; among
  /// equals, one that owns the range now.
  [[nodiscard]] MemberId choose_owner(RangeId range, const RangeLoads& loads) const {
    std::optional<MemberId> best;
    const auto rank = [&](MemberId id) {
      return std::pair{loads.load_of(id), now_.ranges[range].find(id) == nullptr || !survives(id)};
    };
    for (const MemberId id : eligible_)
      if (!is_among(final_owners_[range], id) && (!best || rank(id) < rank(*best))) best = id;
    STARLING_CHECK(best);
    return *best;
  }

  /// Moves one range from the most to the least loaded member. Prefers a range of which the most
  /// loaded member is not the primary.
  void move_one_range(RangeLoads& loads) {
    const MemberId from = loads.most_loaded();
    const MemberId to = loads.least_loaded();
    std::optional<RangeId> chosen;
    for (RangeId r = 0; r < final_owners_.size(); ++r) {
      if (!is_among(final_owners_[r], from) || is_among(final_owners_[r], to)) continue;
      const auto& owners = now_.ranges[r].owners;
      const bool keeps_primary = owners.empty() || owners.front().id != from;
      if (!chosen || keeps_primary) chosen = r;
      if (keeps_primary) break;
    }
    STARLING_CHECK(chosen);
    std::ranges::replace(final_owners_[*chosen], from, to);
    loads.remove(from);
    loads.add(to);
  }

  /// True if all final owners of the range are full.
  [[nodiscard]] bool is_settled(RangeId range) const {
    return std::ranges::all_of(final_owners_[range],
                               [&](MemberId id) { return is_full_owner(range, id); });
  }

  /// Returns the owners of `range` in the next epoch: the primary, then the other present owners in
  /// their order, then the new ones.
  [[nodiscard]] std::vector<RangeOwner> next_owners(RangeId range, bool is_lost) const {
    if (is_lost || now_.ranges[range].owners.empty()) return {};
    std::vector<RangeOwner> owners;
    for (RangeOwner owner : surviving_owners(range, /*only_full=*/false)) {
      owner.retiring = !is_among(final_owners_[range], owner.id);
      if (!owner.retiring || !is_settled(range)) owners.push_back(owner);
    }
    for (const MemberId id : final_owners_[range])
      if (std::ranges::find(owners, id, &RangeOwner::id) == owners.end())
        owners.push_back({id, now_.epoch + 1, false});
    // The current primary stays primary. If it is gone, a full owner becomes primary, preferably
    // one that is not retiring.
    const auto rank = [&](const RangeOwner& owner) {
      if (!is_full_owner(range, owner.id)) return 3;
      if (owner.id == now_.ranges[range].owners.front().id) return 0;
      return owner.retiring ? 2 : 1;
    };
    if (owners.empty()) return owners;
    const auto primary = std::ranges::min_element(owners, {}, rank);
    std::rotate(owners.begin(), primary, primary + 1);
    return owners;
  }

  /// Balances the numbers of ranges of which members are primary. Changes only settled ranges.
  void balance_primaries(Configuration& next) const {
    RangeLoads loads{eligible_};
    for (const Ownership& range : next.ranges)
      if (!range.owners.empty() && loads.contains(range.owners.front().id))
        loads.add(range.owners.front().id);
    for (bool moved = true; moved;) {
      moved = false;
      for (RangeId r = 0; r < next.ranges.size(); ++r) {
        auto& owners = next.ranges[r].owners;
        if (owners.size() < 2 || !is_settled(r) || !loads.contains(owners.front().id)) continue;
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

  /// Removes the members that want to leave and that `next` does not need.
  void remove_leavers(const Configuration& next) {
    std::optional<NodeId> node;
    for (const MemberId leaver : pending_.leaves) {
      const auto owns = [&](const Ownership& range) { return range.find(leaver) != nullptr; };
      const auto member = std::ranges::find(members_, leaver, &Member::id);
      if (members_.size() == 1 || member == members_.end() ||
          std::ranges::any_of(next.ranges, owns))
        continue;
      if (next.ranges.empty() && !has_substitute(leaver)) continue;
      if (pending_.node_by_node &&
          (!pending_.dead.empty() || (node && (*node == 0 || *node != member->node))))
        continue;
      node = member->node;
      members_.erase(member);
    }
  }

  /// True if another member holds all ranges that this one holds.
  [[nodiscard]] bool has_substitute(MemberId id) const {
    const auto own = pending_.held.find(id);
    return own != pending_.held.end() && std::ranges::any_of(members_, [&](const Member& other) {
             const auto held = pending_.held.find(other.id);
             return other.id != id && held != pending_.held.end() &&
                    std::ranges::includes(held->second, own->second);
           });
  }

  /// Returns the former and present members that are not members of the next configuration, each
  /// with its last incarnation.
  [[nodiscard]] std::vector<MemberIncarnation> departed() const {
    std::vector<MemberIncarnation> gone = now_.departed;
    for (const Member& member : now_.members) gone.push_back({member.id, member.incarnation});
    std::erase_if(gone, [&](const MemberIncarnation& old) {
      return std::ranges::find(members_, old.id, &Member::id) != members_.end();
    });
    std::ranges::sort(gone, {}, &MemberIncarnation::id);
    return gone;
  }

  /// Returns the current council without the members that die or leave, filled up to council_max
  /// with the members of the lowest ids.
  [[nodiscard]] std::vector<MemberId> council() const {
    std::vector<MemberId> chosen;
    const auto is_member = [&](MemberId id) {
      return std::ranges::find(members_, id, &Member::id) != members_.end();
    };
    for (const MemberId id : now_.council)
      if (survives(id) && is_member(id) && !is_among(pending_.leaves, id)) chosen.push_back(id);
    for (const bool leavers : {false, true})  // if all members want to leave, one of them votes
      for (const Member& member : members_) {
        if (chosen.size() >= council_max || (leavers && !chosen.empty())) break;
        if (is_among(pending_.leaves, member.id) == leavers && !is_among(chosen, member.id) &&
            !shares_node(member, chosen, members_))
          chosen.push_back(member.id);
      }
    std::ranges::sort(chosen);
    return chosen;
  }

  /// Returns the current coordinator if it stays a member, else its successor: preferably a member
  /// that does not want to leave, then one on another node, then one that was a member before.
  [[nodiscard]] std::optional<MemberId> coordinator() const {
    if (!now_.coordinator) return std::nullopt;
    const auto is_member = [&](MemberId id) {
      return std::ranges::find(members_, id, &Member::id) != members_.end();
    };
    if (survives(*now_.coordinator) && is_member(*now_.coordinator)) return now_.coordinator;
    const std::vector<MemberId> former{*now_.coordinator};
    return choose_coordinator(members_, [&](const Member& member) {
      return std::tuple{is_among(pending_.leaves, member.id),
                        shares_node(member, former, now_.members), !survives(member.id)};
    });
  }

  const Configuration& now_;
  const PendingChanges& pending_;
  std::vector<Member> members_;
  std::vector<MemberId> eligible_;
  std::vector<std::vector<MemberId>> final_owners_;
};

}  // namespace

Configuration first_configuration(std::vector<Member> members, std::size_t ranges,
                                  std::size_t replication_factor, bool has_coordinator) {
  Configuration first;
  first.epoch = 1;
  first.members = std::move(members);
  STARLING_CHECK(std::ranges::is_sorted(first.members, {}, &Member::id));
  for (const Member& member : first.members)
    if (first.council.size() < council_max && !shares_node(member, first.council, first.members))
      first.council.push_back(member.id);
  if (has_coordinator)
    first.coordinator = choose_coordinator(first.members, [](const Member&) { return 0; });
  std::vector<MemberId> owners;
  for (const Member& member : first.members)
    if (member.owns) owners.push_back(member.id);
  STARLING_CHECK(!owners.empty());
  first.ranges.resize(ranges);
  const std::size_t owners_each = std::min(replication_factor, owners.size());
  const auto add_owner = [&](RangeId range, MemberId id) {
    first.ranges[range].owner_epoch = 1;
    first.ranges[range].owners.push_back({id, 1, false});
  };
  // Owners become primary in turn. The other replicas go to the least loaded owners. The search for
  // these starts elsewhere for each range, so that one primary's ranges have different other
  // owners.
  RangeLoads loads{owners};
  for (RangeId r = 0; r < ranges && owners_each > 0; ++r) {
    add_owner(r, owners[r % owners.size()]);
    loads.add(owners[r % owners.size()]);
  }
  for (std::size_t copy = 1; copy < owners_each; ++copy)
    for (RangeId r = 0; r < ranges; ++r) {
      const MemberId id =
          least_loaded_non_owner(first.ranges[r], owners, r + r / owners.size() + copy, loads);
      add_owner(r, id);
      loads.add(id);
    }
  balance_copies(first, loads);
  return first;
}

Successor next_configuration(const Configuration& now, const PendingChanges& pending) {
  return ConfigurationPlanner{now, pending}.plan();
}

}  // namespace starling::core
