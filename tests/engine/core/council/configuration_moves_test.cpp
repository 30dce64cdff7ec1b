/// Tests that, after any change, the next configuration is balanced, moves few ranges, and releases
/// no owner of a range before the other owners hold the range.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "tests/engine/core/council/configurations.hpp"

namespace starling::core {
namespace {

/// Returns for each member how many ranges it owns; if `primaries`, of how many it is the primary.
std::map<MemberId, std::size_t> loads(const Configuration& configuration, bool primaries = false) {
  std::map<MemberId, std::size_t> load;
  for (const Member& member : configuration.members)
    if (member.owns) load[member.id] = 0;
  for (const Ownership& range : configuration.ranges)
    for (const RangeOwner& owner : range.owners)
      if (!primaries || &owner == &range.owners.front()) ++load[owner.id];
  return load;
}

/// Returns the difference of the highest and the lowest load.
std::size_t unevenness(const std::map<MemberId, std::size_t>& loads) {
  const auto [least, most] =
      std::ranges::minmax_element(loads, {}, [](const auto& entry) { return entry.second; });
  return most->second - least->second;
}

/// Returns how many (range, owner) pairs of `after` are not in `before`.
std::size_t count_moves(const Configuration& before, const Configuration& after) {
  std::size_t count = 0;
  for (RangeId r = 0; r < before.ranges.size(); ++r)
    for (const RangeOwner& owner : after.ranges[r].owners)
      count += before.ranges[r].find(owner.id) == nullptr ? 1 : 0;
  return count;
}

TEST(Configuration, FirstOneIsBalanced) {
  for (std::size_t members = 1; members <= 12; ++members)
    for (std::size_t ranges : {0, 1, 3, 7, 24})
      for (std::size_t copies : {1, 2, 3}) {
        std::vector<Member> all;
        for (MemberId id = 0; id < members; ++id) all.push_back({id, 1});
        const auto first = first_configuration(all, ranges, copies);
        EXPECT_LE(unevenness(loads(first)), 1U) << members << " " << ranges << " " << copies;
        for (const Ownership& range : first.ranges) {
          std::set<MemberId> distinct;
          for (const RangeOwner& owner : range.owners) distinct.insert(owner.id);
          EXPECT_EQ(distinct.size(), std::min(copies, members));
        }
        EXPECT_FALSE(next_configuration(
                         first, {.replication_factor = copies, .full = all_owners_full(first)})
                         .next);
      }
}

TEST(Configuration, MovesARangeInTwoEpochs) {
  auto current = first_configuration(members_of({0, 1, 2}), 9, 2);
  PendingChanges pending{.joins = {{7, 1}}, .full = all_owners_full(current)};
  const auto between = next_configuration(current, pending).next;
  ASSERT_TRUE(between);
  std::size_t moved = 0;
  for (RangeId r = 0; r < 9; ++r) {
    if (between->ranges[r].find(7) == nullptr) continue;
    ++moved;
    EXPECT_EQ(between->ranges[r].owners.size(), 3U);
    EXPECT_NE(between->ranges[r].owners.front().id, 7U);
    EXPECT_EQ(std::ranges::count_if(between->ranges[r].owners, &RangeOwner::retiring), 1);
  }
  EXPECT_EQ(moved, 18U / 4);
  // Nothing changes while the new owner does not hold the ranges.
  EXPECT_FALSE(next_configuration(*between, {.full = only_primaries_full(*between)}).next);
  const auto after = next_configuration(*between, {.full = all_owners_full(*between)}).next;
  ASSERT_TRUE(after);
  for (const Ownership& range : after->ranges) EXPECT_EQ(range.owners.size(), 2U);
}

TEST(Configuration, MemberLeavesOnceOthersHoldItsRanges) {
  const auto first = first_configuration(members_of({0, 1, 2, 3}), 8, 2);
  const auto between =
      next_configuration(first, {.leaves = {2}, .full = all_owners_full(first)}).next;
  ASSERT_TRUE(between);
  EXPECT_NE(between->find(2), nullptr);
  EXPECT_FALSE(between->in_council(2));
  for (RangeId r = 0; r < 8; ++r)
    if (first.ranges[r].find(2) != nullptr) {
      EXPECT_NE(between->ranges[r].find(2), nullptr);
    }
  const auto after =
      next_configuration(*between, {.leaves = {2}, .full = all_owners_full(*between)}).next;
  ASSERT_TRUE(after);
  EXPECT_EQ(after->find(2), nullptr);
}

/// Applies many random sequences of joins, deaths and leaves. Owners become full after random
/// times, as in jobs.
TEST(Configuration, KeepsItsInvariantsThroughRandomChanges) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random{seed};
    const std::size_t copies = 1 + random.below(3);
    std::vector<Member> members;
    const auto initial_members = static_cast<MemberId>(copies + 1 + random.below(5));
    for (MemberId id = 0; id < initial_members; ++id) members.push_back({id, 1});
    auto current = first_configuration(members, random.below(20), copies, seed % 2 == 0);
    auto full = all_owners_full(current);
    MemberId next_id = initial_members;
    std::vector<MemberId> leaves;
    for (int step = 0; step < 30; ++step) {
      PendingChanges pending{.replication_factor = copies, .leaves = leaves, .full = full};
      const auto any_member = [&] {
        return current.members[random.below(current.members.size())].id;
      };
      if (random.below(3) == 0) pending.joins.push_back({next_id++, 1});
      if (random.below(5) == 0)
        pending.joins.push_back({any_member(), static_cast<Incarnation>(2 + step)});
      if (random.below(3) == 0) pending.dead.push_back(any_member());
      if (random.below(6) == 0) pending.leaves = leaves = {any_member()};
      const auto successor = next_configuration(current, pending);
      if (!successor.next) continue;
      const Configuration& next = *successor.next;
      ASSERT_EQ(next.epoch, current.epoch + 1);
      ASSERT_TRUE(std::ranges::is_sorted(next.members, {}, &Member::id));
      ASSERT_FALSE(next.council.empty());
      for (const MemberId id : next.council) ASSERT_NE(next.find(id), nullptr);
      // A coordinator stays while its incarnation is a member. After that, another member becomes
      // coordinator.
      ASSERT_EQ(next.coordinator.has_value(), seed % 2 == 0);
      if (current.coordinator) {
        ASSERT_NE(next.find(*next.coordinator), nullptr);
        const auto incarnation = current.find(*current.coordinator)->incarnation;
        ASSERT_EQ(next.has_same_coordinator_as(current),
                  next.contains(*current.coordinator, incarnation));
      }
      std::size_t eligible = 0;
      std::map<MemberId, std::size_t> final_loads;
      for (const bool leaving : {false, true})  // leavers stay owners if too few others are left
        for (const Member& member : next.members)
          if ((std::ranges::count(leaves, member.id) > 0) == leaving &&
              (!leaving || final_loads.size() < copies)) {
            final_loads[member.id] = 0;
            ++eligible;
          }
      for (RangeId r = 0; r < next.ranges.size(); ++r) {
        const auto& before = current.ranges[r];
        const auto& after = next.ranges[r];
        const auto continues = [&](const RangeOwner& owner) {
          const auto* old = before.find(owner.id);
          return old != nullptr &&
                 current.find(owner.id)->incarnation == next.find(owner.id)->incarnation;
        };
        // The primary is full. Every owner is a member, and is listed once.
        ASSERT_TRUE(continues(after.owners.front()));
        ASSERT_EQ(std::ranges::count(full[r], after.owners.front().id), 1);
        std::set<MemberId> distinct;
        std::size_t stay = 0;
        bool all_full = true;
        for (const RangeOwner& owner : after.owners) {
          ASSERT_NE(next.find(owner.id), nullptr);
          distinct.insert(owner.id);
          ASSERT_EQ(owner.since, continues(owner) ? before.find(owner.id)->since : next.epoch);
          if (owner.retiring) continue;
          ++stay;
          if (final_loads.contains(owner.id)) ++final_loads[owner.id];
          all_full = all_full && continues(owner) && std::ranges::count(full[r], owner.id) > 0;
        }
        ASSERT_EQ(distinct.size(), after.owners.size());
        if (eligible > 0) {
          ASSERT_EQ(stay, std::min(copies, eligible));
        }
        // No live owner is released before all owners that stay hold the range.
        for (const RangeOwner& owner : before.owners) {
          const auto* still = next.find(owner.id);
          const bool alive =
              still != nullptr && still->incarnation == current.find(owner.id)->incarnation;
          if (!all_full && alive) {
            ASSERT_NE(after.find(owner.id), nullptr);
          }
        }
        const bool same = std::ranges::equal(
            before.owners, after.owners,
            [](const auto& a, const auto& b) { return a.id == b.id && a.since == b.since; });
        ASSERT_EQ(after.owner_epoch, same ? before.owner_epoch : next.epoch);
      }
      if (eligible > 0) {
        ASSERT_LE(unevenness(final_loads), 1U) << seed << " " << step;
      }
      // A full owner that has remained owner stays full, and some new owners become full.
      std::vector<std::vector<MemberId>> held(next.ranges.size());
      for (RangeId r = 0; r < next.ranges.size(); ++r)
        for (const RangeOwner& owner : next.ranges[r].owners) {
          const bool kept = owner.since < next.epoch && std::ranges::count(full[r], owner.id) > 0;
          if (kept || random.below(2) == 0) held[r].push_back(owner.id);
        }
      for (auto& ids : held) std::ranges::sort(ids);
      full = std::move(held);
      current = next;
      std::erase_if(leaves, [&](MemberId id) { return current.find(id) == nullptr; });
    }
    const auto stable = apply_until_stable(current, {.replication_factor = copies});
    EXPECT_LE(unevenness(loads(stable)), 1U);
    for (const Ownership& range : stable.ranges)
      EXPECT_EQ(range.owners.size(), std::min(copies, stable.members.size()));
  }
}

TEST(Configuration, MovesFewRanges) {
  for (std::size_t n = 3; n < 12; ++n) {
    std::vector<Member> members;
    for (MemberId id = 0; id < n; ++id) members.push_back({id, 1});
    const std::size_t ranges = 5 * n;
    const auto first = first_configuration(members, ranges, 2);
    // A joiner gets its fair share, and nothing else moves.
    const auto joined =
        next_configuration(first, {.joins = {{100, 1}}, .full = all_owners_full(first)}).next;
    ASSERT_TRUE(joined);
    EXPECT_EQ(count_moves(first, *joined), 2 * ranges / (n + 1));
    // The ranges of the dead member get new owners; at most two other replicas move.
    const auto after_death =
        next_configuration(first, {.dead = {0}, .full = all_owners_full(first)}).next;
    ASSERT_TRUE(after_death);
    EXPECT_LE(count_moves(first, *after_death), loads(first).at(0) + 2);
  }
}

TEST(Configuration, BalancesPrimariesToo) {
  auto current = first_configuration(members_of({0, 1}), 12, 2);
  current = apply_until_stable(current, {.joins = {{2, 1}, {3, 1}}});
  EXPECT_LE(unevenness(loads(current)), 1U);
  EXPECT_LE(unevenness(loads(current, true)), 2U);
}

}  // namespace
}  // namespace starling::core
