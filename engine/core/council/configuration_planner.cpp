#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "starling/base/check.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/council/range_loads.hpp"
#include "starling/engine/core/council/range_planner.hpp"

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
  }

  Successor plan() {
    const RangePlanner ranges{{.now = now_.ranges,
                               .next_epoch = now_.epoch + 1,
                               .eligible = eligible_,
                               .full = pending_.full,
                               .replication_factor = pending_.replication_factor,
                               .survives = [this](MemberId id) { return survives(id); }}};
    Successor result;
    result.lost = ranges.lost();
    std::ranges::copy(lost_unplaced_ranges(), std::back_inserter(result.lost));
    if (members_.empty() || (!result.lost.empty() && !pending_.gives_up_lost_ranges)) return result;
    auto next = std::make_shared<Configuration>();
    next->epoch = now_.epoch + 1;
    next->ranges = ranges.plan();
    remove_leavers(*next);
    next->members = members_;
    next->departed = departed();
    next->members_since = next->has_same_members_as(now_) ? now_.members_since : next->epoch;
    next->council = council();
    next->coordinator = coordinator();
    if (pending_.bsp && workers_of(now_.members) != workers_of(members_))
      for (Ownership& range : next->ranges) range.owner_epoch = next->epoch;
    const bool is_change = next->members != now_.members || next->council != now_.council ||
                           next->ranges != now_.ranges;
    if (is_change) result.next = std::move(next);
    return result;
  }

 private:
  /// Returns the ranges that have no owners, and that no surviving member holds.
  [[nodiscard]] std::vector<RangeId> lost_unplaced_ranges() const {
    std::vector<RangeId> lost;
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

  /// Determines the members of the next configuration, and which of them are eligible as owners.
  void gather_members() {
    for (const Member& member : now_.members)
      if (survives(member.id)) members_.push_back(member);
    for (const Member& joiner : pending_.joins) {
      const auto position = std::ranges::lower_bound(members_, joiner.id, {}, &Member::id);
      if (position != members_.end() && position->id == joiner.id) continue;  // is a member already
      if (now_.is_or_was_member(joiner.id, joiner.incarnation)) continue;
      // Another member of its node may have been made an owner before this one asked to join.
      const bool has_owner = std::ranges::any_of(members_, [&](const Member& other) {
        return other.owns && other.node != 0 && other.node == joiner.node;
      });
      members_.insert(position, joiner)->owns = joiner.owns && !has_owner;
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
            !shares_node(member, eligible_, members_) &&
            !shares_node(member, pending_.leaves, members_))
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

  /// True if another member holds all ranges that member `id` holds.
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
    // If a request to leave counts only in this epoch, a member that stays nevertheless may vote.
    const auto leaves = [&](MemberId id) {
      return !pending_.node_by_node && is_among(pending_.leaves, id);
    };
    for (const MemberId id : now_.council)
      if (survives(id) && is_member(id) && !leaves(id)) chosen.push_back(id);
    for (const bool leavers : {false, true})  // if all members want to leave, one of them votes
      for (const Member& member : members_) {
        if (chosen.size() >= council_max || (leavers && !chosen.empty())) break;
        if (leaves(member.id) == leavers && !is_among(chosen, member.id) &&
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
  balance_replicas(first, loads);
  return first;
}

Successor next_configuration(const Configuration& now, const PendingChanges& pending) {
  return ConfigurationPlanner{now, pending}.plan();
}

}  // namespace starling::core
