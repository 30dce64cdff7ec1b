/// Whatever happens to the members, the next configuration is balanced, moves little, and never
/// lets a range go before it is held elsewhere.
#include "starling/engine/core/council/configuration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "starling/base/random.hpp"

namespace starling::core {
namespace {

std::vector<Member> members_of(std::initializer_list<MemberId> ids) {
  std::vector<Member> members;
  for (const MemberId id : ids) members.push_back({id, 1});
  return members;
}

std::vector<std::vector<MemberId>> everyone_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) {
    full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.back().push_back(owner.id);
    std::ranges::sort(full.back());
  }
  return full;
}

std::vector<std::vector<MemberId>> primaries_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) full.push_back({range.owners.front().id});
  return full;
}

std::map<MemberId, std::size_t> loads(const Configuration& configuration, bool primaries = false) {
  std::map<MemberId, std::size_t> load;
  for (const Member& member : configuration.members)
    if (member.owns) load[member.id] = 0;
  for (const Ownership& range : configuration.ranges)
    for (const RangeOwner& owner : range.owners)
      if (!primaries || &owner == &range.owners.front()) ++load[owner.id];
  return load;
}

std::size_t unevenness(const std::map<MemberId, std::size_t>& loads) {
  const auto [least, most] =
      std::ranges::minmax_element(loads, {}, [](const auto& entry) { return entry.second; });
  return most->second - least->second;
}

/// How many (range, owner) pairs of `after` are not in `before`.
std::size_t arrivals(const Configuration& before, const Configuration& after) {
  std::size_t count = 0;
  for (RangeId r = 0; r < before.ranges.size(); ++r)
    for (const RangeOwner& owner : after.ranges[r].owners)
      count += before.ranges[r].find(owner.id) == nullptr ? 1 : 0;
  return count;
}

/// Applies `pending` with everyone full until nothing changes.
Configuration settle(Configuration now, PendingChanges pending) {
  for (int i = 0; i < 10; ++i) {
    pending.full = everyone_full(now);
    const auto next = next_configuration(now, pending).next;
    if (!next) return now;
    EXPECT_EQ(next->epoch, now.epoch + 1);
    now = *next;
    std::erase_if(pending.leaves, [&](MemberId id) { return now.find(id) == nullptr; });
    pending.dead.clear();
    pending.joins.clear();
  }
  ADD_FAILURE() << "does not come to rest";
  return now;
}

TEST(Configuration, BeginsBalanced) {
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
        EXPECT_FALSE(
            next_configuration(first, {.copies = copies, .full = everyone_full(first)}).next);
      }
}

TEST(Configuration, QuorumsOfOneCouncilAlwaysMeet) {
  for (std::size_t size = 1; size <= council_max; ++size) {
    std::vector<MemberId> council;
    for (MemberId id = 0; id < size; ++id) council.push_back(3 * id + 1);
    const auto subset = [&](unsigned bits) {
      std::vector<MemberId> voters;
      for (MemberId i = 0; i < size; ++i)
        if ((bits >> i & 1U) != 0) voters.push_back(council[i]);
      return voters;
    };
    EXPECT_TRUE(is_quorum(council, council));
    EXPECT_FALSE(is_quorum(council, {}));
    for (unsigned a = 0; a < 1U << size; ++a)
      for (unsigned b = 0; b < 1U << size; ++b)
        if (is_quorum(council, subset(a)) && is_quorum(council, subset(b))) {
          ASSERT_NE(a & b, 0U) << size << ": " << a << " and " << b;
        }
  }
}

TEST(Configuration, HalfDecidesWhereItHoldsTheLowest) {
  const std::vector<MemberId> council{2, 5, 7, 9};
  EXPECT_TRUE(is_quorum(council, std::vector<MemberId>{2, 9}));
  EXPECT_FALSE(is_quorum(council, std::vector<MemberId>{5, 7}));
  EXPECT_FALSE(is_quorum(council, std::vector<MemberId>{2, 11, 12}));
}

TEST(Configuration, NothingToDoIsNoEpoch) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  // Even where only the primaries are known to be full.
  EXPECT_FALSE(next_configuration(first, {.full = primaries_full(first)}).next);
  EXPECT_FALSE(next_configuration(first, {.joins = {{1, 1}}, .full = everyone_full(first)}).next);
}

TEST(Configuration, DeadOnesRangesGoToWhoHoldsThem) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  const auto after = next_configuration(first, {.dead = {1}, .full = everyone_full(first)}).next;
  ASSERT_TRUE(after);
  EXPECT_EQ(after->members, members_of({0, 2}));
  EXPECT_EQ(after->council, (std::vector<MemberId>{0, 2}));
  for (RangeId r = 0; r < 6; ++r) {
    EXPECT_EQ(after->ranges[r].owners.size(), 2U);
    EXPECT_NE(first.ranges[r].find(after->ranges[r].owners.front().id), nullptr);
    // Where nothing changed, the view goes on.
    const bool changed = first.ranges[r].find(1) != nullptr ||
                         first.ranges[r].owners.front() != after->ranges[r].owners.front();
    EXPECT_EQ(after->ranges[r].view, changed ? 2U : 1U);
  }
}

TEST(Configuration, NamesLostRangesAndGivesThemUpWhenTold) {
  const auto first = first_configuration(members_of({0, 1, 2, 3}), 4, 2);
  PendingChanges pending{.dead = {first.ranges[0].owners[0].id, first.ranges[0].owners[1].id},
                         .full = everyone_full(first)};
  std::ranges::sort(pending.dead);
  const auto refused = next_configuration(first, pending);
  EXPECT_FALSE(refused.next);
  EXPECT_FALSE(refused.lost.empty());
  EXPECT_EQ(refused.lost.front(), 0U);
  pending.give_up = true;
  const auto end = next_configuration(first, pending);
  ASSERT_TRUE(end.next);
  EXPECT_TRUE(end.next->lost());
  EXPECT_TRUE(end.next->ranges[0].owners.empty());
}

TEST(Configuration, CopyThatIsNotKnownToHoldItIsNoPrimary) {
  const auto first = first_configuration(members_of({0, 1, 2}), 1, 2);
  const auto& owners = first.ranges[0].owners;
  EXPECT_FALSE(next_configuration(first, {.dead = {owners[0].id}, .full = {{owners[0].id}}}).next);
  const auto next =
      next_configuration(first, {.dead = {owners[0].id}, .full = {{owners[1].id}}}).next;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->ranges[0].owners.front().id, owners[1].id);
}

TEST(Configuration, NewLifeOwnsNothingOfTheOld) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  const auto next =
      next_configuration(first, {.joins = {{1, 2}}, .full = everyone_full(first)}).next;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->find(1)->incarnation, 2U);
  for (const Ownership& range : next->ranges) {
    EXPECT_NE(range.owners.front().id, 1U);
    if (const auto* owner = range.find(1)) {
      EXPECT_EQ(owner->since, 2U);
    }
  }
}

TEST(Configuration, MovesInTwoSteps) {
  auto now = first_configuration(members_of({0, 1, 2}), 9, 2);
  PendingChanges pending{.joins = {{7, 1}}, .full = everyone_full(now)};
  const auto between = next_configuration(now, pending).next;
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
  // As long as the newcomer does not hold them, nothing changes.
  EXPECT_FALSE(next_configuration(*between, {.full = primaries_full(*between)}).next);
  const auto after = next_configuration(*between, {.full = everyone_full(*between)}).next;
  ASSERT_TRUE(after);
  for (const Ownership& range : after->ranges) EXPECT_EQ(range.owners.size(), 2U);
}

TEST(Configuration, LeaverGoesWhenItsRangesAreHeldElsewhere) {
  const auto first = first_configuration(members_of({0, 1, 2, 3}), 8, 2);
  const auto between =
      next_configuration(first, {.leaves = {2}, .full = everyone_full(first)}).next;
  ASSERT_TRUE(between);
  EXPECT_NE(between->find(2), nullptr);
  EXPECT_FALSE(between->in_council(2));
  for (RangeId r = 0; r < 8; ++r)
    if (first.ranges[r].find(2) != nullptr) {
      EXPECT_NE(between->ranges[r].find(2), nullptr);
    }
  const auto after =
      next_configuration(*between, {.leaves = {2}, .full = everyone_full(*between)}).next;
  ASSERT_TRUE(after);
  EXPECT_EQ(after->find(2), nullptr);
}

TEST(Configuration, ServersOwnAndWorkersDoNot) {
  std::vector<Member> members{{0, 1, true, false},
                              {1, 1, true, false},
                              {8, 1, false, true},
                              {9, 1, false, true},
                              {10, 1, false, true}};
  auto first = first_configuration(members, 5, 2);
  for (const Ownership& range : first.ranges)
    for (const RangeOwner& owner : range.owners) EXPECT_GE(owner.id, 8U);
  const auto after = settle(first, {.leaves = {0}, .dead = {9}});
  EXPECT_EQ(after.members.size(), 3U);
  for (const Ownership& range : after.ranges)
    for (const RangeOwner& owner : range.owners) EXPECT_TRUE(owner.id == 8 || owner.id == 10);
}

/// The owners of some ranges.
std::set<MemberId> owners_in(const Configuration& now) {
  std::set<MemberId> all;
  for (const Ownership& range : now.ranges)
    for (const RangeOwner& owner : range.owners) all.insert(owner.id);
  return all;
}

/// Workers 0 to 4 on nodes 1 to 5, servers 5 and 6 on nodes 5 and 4, the coordinator 7 on node 1.
Configuration five_nodes(std::size_t copies) {
  std::vector<Member> members;
  for (MemberId id = 0; id < 5; ++id) members.push_back({id, 1, true, false, 1 + id});
  members.push_back({5, 1, false, true, 5});
  members.push_back({6, 1, false, true, 4});
  members.push_back({7, 1, false, false, 1});
  return first_configuration(std::move(members), 6, copies, true);
}

TEST(Configuration, OwnersThatDieAreReplacedAsLongAsThereAreNodes) {
  const auto first = five_nodes(2);
  ASSERT_EQ(owners_in(first), (std::set<MemberId>{5, 6}));
  const auto second = settle(first, {.dead = {4, 5}});
  EXPECT_EQ(owners_in(second), (std::set<MemberId>{1, 6})) << "not on node 4, which has an owner";
  EXPECT_EQ(second.copies_min(), 2U);
  const auto third = settle(second, {.dead = {3, 6}});
  EXPECT_EQ(owners_in(third), (std::set<MemberId>{1, 2}));
  const auto fourth = settle(third, {.dead = {1}});
  EXPECT_EQ(owners_in(fourth), (std::set<MemberId>{2, 7})) << "on the coordinator's node last";
  const auto last = settle(fourth, {.dead = {2}});
  EXPECT_EQ(owners_in(last), std::set<MemberId>{7}) << "one of a node";
  EXPECT_EQ(last.copies_min(), 1U);
}

TEST(Configuration, OwnersAreNoFewerThanCopiesAndThanTheyWereToBe) {
  EXPECT_EQ(owners_in(settle(five_nodes(2), {.copies = 3})).size(), 3U);
  const auto four = settle(five_nodes(2), {.copies = 2, .owners = 4});
  EXPECT_EQ(owners_in(four).size(), 4U);
  EXPECT_EQ(four.copies_min(), 2U);
  EXPECT_EQ(owners_in(settle(five_nodes(2), {.copies = 2, .owners = 9})).size(), 5U);
}

TEST(Configuration, OwnersMayAllLeaveWhereOthersCanOwn) {
  const auto after = settle(five_nodes(2), {.leaves = {3, 4, 5, 6}});
  EXPECT_EQ(owners_in(after), (std::set<MemberId>{1, 2}));
  EXPECT_EQ(after.find(5), nullptr);
  EXPECT_EQ(after.find(6), nullptr);
}

/// Workers 0 to 3 on nodes 1 and 2, servers 4 and 5, and 6, which does nothing else, on node 1.
Configuration coordinated() {
  std::vector<Member> members;
  for (MemberId id = 0; id < 4; ++id) members.push_back({id, 1, true, false, 1 + id / 2});
  members.push_back({4, 1, false, true, 1});
  members.push_back({5, 1, false, true, 2});
  members.push_back({6, 1, false, false, 1});
  return first_configuration(std::move(members), 3, 2, true);
}

TEST(Coordinator, IsWhoeverDoesNothingElse) {
  EXPECT_EQ(coordinated().coordinator, 6U);
  EXPECT_EQ(first_configuration(members_of({0, 1}), 2, 2, true).coordinator, 0U);
  EXPECT_EQ(first_configuration(members_of({0, 1}), 2, 2).coordinator, std::nullopt);
}

TEST(Coordinator, HasASuccessorOnAnotherNodeWhenItGoes) {
  const Configuration first = coordinated();
  const auto follows = [&](PendingChanges pending) {
    pending.full = everyone_full(first);
    const auto next = next_configuration(first, pending).next;
    EXPECT_FALSE(next->keeps_coordinator_of(first));
    return *next->coordinator;
  };
  EXPECT_EQ(follows({.dead = {6}}), 2U) << "those on its node may be dead as well";
  EXPECT_EQ(follows({.leaves = {6}}), 2U);
  EXPECT_EQ(follows({.leaves = {2, 3}, .dead = {6}}), 5U) << "those who leave would go soon";
  EXPECT_EQ(follows({.joins = {{6, 2, false, false, 1}}}), 2U) << "a new incarnation knows nothing";
  EXPECT_EQ(follows({.joins = {{7, 1, false, false, 3}}, .dead = {6}}), 2U) << "nor who joins";
  EXPECT_EQ(follows({.dead = {2, 3, 5, 6}}), 0U) << "where there is nobody else";
}

TEST(Coordinator, StaysAsLongAsItIsAMember) {
  const Configuration first = coordinated();
  const auto next = next_configuration(
      first, {.joins = {{7, 1, false, false, 3}}, .dead = {0}, .full = everyone_full(first)});
  ASSERT_TRUE(next.next);
  EXPECT_TRUE(next.next->keeps_coordinator_of(first));
}

TEST(Configuration, BulkJobsBeginNewViewsWithTheirWorkers) {
  const auto first = first_configuration(members_of({0, 1, 2, 3, 4, 5}), 2, 2);
  MemberId idle = 0;
  while (first.ranges[0].find(idle) != nullptr || first.ranges[1].find(idle) != nullptr) ++idle;
  const auto plain = next_configuration(first, {.dead = {idle}, .full = everyone_full(first)}).next;
  const auto bsp =
      next_configuration(first, {.bsp = true, .dead = {idle}, .full = everyone_full(first)}).next;
  ASSERT_TRUE(plain && bsp);
  for (RangeId r = 0; r < 2; ++r) {
    EXPECT_EQ(plain->ranges[r].view, 1U);
    EXPECT_EQ(bsp->ranges[r].view, 2U);
  }
}

/// Many random histories of a cluster. Owners become full at random, as hand-overs end when they
/// end.
TEST(Configuration, HoldsWhatItPromisesThroughRandomLives) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random{seed};
    const std::size_t copies = 1 + random.below(3);
    std::vector<Member> members;
    const auto founders = static_cast<MemberId>(copies + 1 + random.below(5));
    for (MemberId id = 0; id < founders; ++id) members.push_back({id, 1});
    auto now = first_configuration(members, random.below(20), copies, seed % 2 == 0);
    auto full = everyone_full(now);
    MemberId fresh = founders;
    std::vector<MemberId> leaves;
    for (int step = 0; step < 30; ++step) {
      PendingChanges pending{.copies = copies, .leaves = leaves, .full = full};
      const auto any = [&] { return now.members[random.below(now.members.size())].id; };
      if (random.below(3) == 0) pending.joins.push_back({fresh++, 1});
      if (random.below(5) == 0)
        pending.joins.push_back({any(), static_cast<Incarnation>(2 + step)});
      if (random.below(3) == 0) pending.dead.push_back(any());
      if (random.below(6) == 0) pending.leaves = leaves = {any()};
      const auto successor = next_configuration(now, pending);
      if (!successor.next) continue;
      const Configuration& next = *successor.next;
      ASSERT_EQ(next.epoch, now.epoch + 1);
      ASSERT_TRUE(std::ranges::is_sorted(next.members, {}, &Member::id));
      ASSERT_FALSE(next.council.empty());
      for (const MemberId id : next.council) ASSERT_NE(next.find(id), nullptr);
      // A coordinator keeps the steps as long as its incarnation is a member; then another member
      // does.
      ASSERT_EQ(next.coordinator.has_value(), seed % 2 == 0);
      if (now.coordinator) {
        ASSERT_NE(next.find(*next.coordinator), nullptr);
        const auto incarnation = now.find(*now.coordinator)->incarnation;
        ASSERT_EQ(next.keeps_coordinator_of(now), next.contains(*now.coordinator, incarnation));
      }
      std::size_t owners_alive = 0;
      std::map<MemberId, std::size_t> targets;
      for (const bool leaving : {false, true})  // leavers stay where there are too few others
        for (const Member& member : next.members)
          if ((std::ranges::count(leaves, member.id) > 0) == leaving &&
              (!leaving || targets.size() < copies)) {
            targets[member.id] = 0;
            ++owners_alive;
          }
      for (RangeId r = 0; r < next.ranges.size(); ++r) {
        const auto& before = now.ranges[r];
        const auto& after = next.ranges[r];
        const auto continues = [&](const RangeOwner& owner) {
          const auto* old = before.find(owner.id);
          return old != nullptr &&
                 now.find(owner.id)->incarnation == next.find(owner.id)->incarnation;
        };
        // The primary is full, and every owner a member, once.
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
          if (targets.contains(owner.id)) ++targets[owner.id];
          all_full = all_full && continues(owner) && std::ranges::count(full[r], owner.id) > 0;
        }
        ASSERT_EQ(distinct.size(), after.owners.size());
        if (owners_alive > 0) {
          ASSERT_EQ(stay, std::min(copies, owners_alive));
        }
        // No live owner is released before all that stay hold the range.
        for (const RangeOwner& owner : before.owners) {
          const auto* still = next.find(owner.id);
          const bool alive =
              still != nullptr && still->incarnation == now.find(owner.id)->incarnation;
          if (!all_full && alive) {
            ASSERT_NE(after.find(owner.id), nullptr);
          }
        }
        const bool same = std::ranges::equal(
            before.owners, after.owners,
            [](const auto& a, const auto& b) { return a.id == b.id && a.since == b.since; });
        ASSERT_EQ(after.view, same ? before.view : next.epoch);
      }
      if (owners_alive > 0) {
        ASSERT_LE(unevenness(targets), 1U) << seed << " " << step;
      }
      // An owner that held a range and still owns it without a break still holds it; some new
      // owners hold it by now.
      std::vector<std::vector<MemberId>> held(next.ranges.size());
      for (RangeId r = 0; r < next.ranges.size(); ++r)
        for (const RangeOwner& owner : next.ranges[r].owners) {
          const bool kept = owner.since < next.epoch && std::ranges::count(full[r], owner.id) > 0;
          if (kept || random.below(2) == 0) held[r].push_back(owner.id);
        }
      for (auto& ids : held) std::ranges::sort(ids);
      full = std::move(held);
      now = next;
      std::erase_if(leaves, [&](MemberId id) { return now.find(id) == nullptr; });
    }
    const auto rest = settle(now, {.copies = copies});
    EXPECT_LE(unevenness(loads(rest)), 1U);
    for (const Ownership& range : rest.ranges)
      EXPECT_EQ(range.owners.size(), std::min(copies, rest.members.size()));
  }
}

TEST(Configuration, MovesLittle) {
  for (std::size_t n = 3; n < 12; ++n) {
    std::vector<Member> members;
    for (MemberId id = 0; id < n; ++id) members.push_back({id, 1});
    const std::size_t ranges = 5 * n;
    const auto first = first_configuration(members, ranges, 2);
    // A joiner takes its fair share and nothing else moves.
    const auto joined =
        next_configuration(first, {.joins = {{100, 1}}, .full = everyone_full(first)}).next;
    ASSERT_TRUE(joined);
    EXPECT_EQ(arrivals(first, *joined), 2 * ranges / (n + 1));
    // The ranges of the dead member get new owners; at most two other replicas move.
    const auto bereft = next_configuration(first, {.dead = {0}, .full = everyone_full(first)}).next;
    ASSERT_TRUE(bereft);
    EXPECT_LE(arrivals(first, *bereft), loads(first).at(0) + 2);
  }
}

TEST(Configuration, PrimariesSpreadToo) {
  auto now = first_configuration(members_of({0, 1}), 12, 2);
  now = settle(now, {.joins = {{2, 1}, {3, 1}}});
  EXPECT_LE(unevenness(loads(now)), 1U);
  EXPECT_LE(unevenness(loads(now, true)), 2U);
}

TEST(Council, HasOneMemberOfANode) {
  std::vector<Member> members;
  for (MemberId id = 0; id < 12; ++id) members.push_back({id, 1, true, id % 3 == 0, 1 + id / 3});
  Configuration now = first_configuration(members, 8, 2);
  EXPECT_EQ(now.council, (std::vector<MemberId>{0, 3, 6, 9}));
  PendingChanges pending;
  pending.dead = {3};
  pending.full.assign(8, {0, 3, 6, 9});
  now = *next_configuration(now, pending).next;
  EXPECT_EQ(now.council, (std::vector<MemberId>{0, 4, 6, 9}));
}

}  // namespace
}  // namespace starling::core
