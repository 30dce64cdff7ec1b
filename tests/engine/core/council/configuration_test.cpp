/// Tests how each change of the members changes the next configuration: its owners, its coordinator
/// and its council.
#include "starling/engine/core/council/configuration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/engine/core/council/configurations.hpp"

namespace starling::core {
namespace {

TEST(Configuration, TwoQuorumsOfACouncilHaveAMemberInCommon) {
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

TEST(Configuration, HalfOfTheCouncilWithTheLowestMemberIsAQuorum) {
  const std::vector<MemberId> council{2, 5, 7, 9};
  EXPECT_TRUE(is_quorum(council, std::vector<MemberId>{2, 9}));
  EXPECT_FALSE(is_quorum(council, std::vector<MemberId>{5, 7}));
  EXPECT_FALSE(is_quorum(council, std::vector<MemberId>{2, 11, 12}));
}

TEST(Configuration, HasNoSuccessorIfNothingChanges) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  // There is none either if only the primaries are full, or if a present member asks to join.
  EXPECT_FALSE(next_configuration(first, {.full = only_primaries_full(first)}).next);
  EXPECT_FALSE(next_configuration(first, {.joins = {{1, 1}}, .full = all_owners_full(first)}).next);
}

TEST(Configuration, OwnersOfADeadPrimarysRangesBecomePrimary) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  const auto after = next_configuration(first, {.dead = {1}, .full = all_owners_full(first)}).next;
  ASSERT_TRUE(after);
  EXPECT_EQ(after->members, members_of({0, 2}));
  EXPECT_EQ(after->council, (std::vector<MemberId>{0, 2}));
  for (RangeId r = 0; r < 6; ++r) {
    EXPECT_EQ(after->ranges[r].owners.size(), 2U);
    EXPECT_NE(first.ranges[r].find(after->ranges[r].owners.front().id), nullptr);
    // The owner epoch of a range changes only with its owners.
    const bool changed = first.ranges[r].find(1) != nullptr ||
                         first.ranges[r].owners.front() != after->ranges[r].owners.front();
    EXPECT_EQ(after->ranges[r].owner_epoch, changed ? 2U : 1U);
  }
}

TEST(Configuration, NamesLostRangesAndGivesThemUpOnRequest) {
  const auto first = first_configuration(members_of({0, 1, 2, 3}), 4, 2);
  PendingChanges pending{.dead = {first.ranges[0].owners[0].id, first.ranges[0].owners[1].id},
                         .full = all_owners_full(first)};
  std::ranges::sort(pending.dead);
  const auto refused = next_configuration(first, pending);
  EXPECT_FALSE(refused.next);
  EXPECT_FALSE(refused.lost.empty());
  EXPECT_EQ(refused.lost.front(), 0U);
  pending.gives_up_lost_ranges = true;
  const auto given_up = next_configuration(first, pending);
  ASSERT_TRUE(given_up.next);
  EXPECT_TRUE(given_up.next->has_lost_range());
  EXPECT_TRUE(given_up.next->ranges[0].owners.empty());
}

TEST(Configuration, OwnerThatIsNotKnownToBeFullDoesNotBecomePrimary) {
  const auto first = first_configuration(members_of({0, 1, 2}), 1, 2);
  const auto& owners = first.ranges[0].owners;
  EXPECT_FALSE(next_configuration(first, {.dead = {owners[0].id}, .full = {{owners[0].id}}}).next);
  const auto next =
      next_configuration(first, {.dead = {owners[0].id}, .full = {{owners[1].id}}}).next;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->ranges[0].owners.front().id, owners[1].id);
}

TEST(Configuration, NewIncarnationOwnsNoRangeOfTheOldOne) {
  const auto first = first_configuration(members_of({0, 1, 2}), 6, 2);
  const auto next =
      next_configuration(first, {.joins = {{1, 2}}, .full = all_owners_full(first)}).next;
  ASSERT_TRUE(next);
  EXPECT_EQ(next->find(1)->incarnation, 2U);
  for (const Ownership& range : next->ranges) {
    EXPECT_NE(range.owners.front().id, 1U);
    if (const auto* owner = range.find(1)) {
      EXPECT_EQ(owner->since, 2U);
    }
  }
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
  const auto after = apply_until_stable(first, {.leaves = {0}, .dead = {9}});
  EXPECT_EQ(after.members.size(), 3U);
  for (const Ownership& range : after.ranges)
    for (const RangeOwner& owner : range.owners) EXPECT_TRUE(owner.id == 8 || owner.id == 10);
}

/// Returns the members that own at least one range.
std::set<MemberId> owners_in(const Configuration& current) {
  std::set<MemberId> owners;
  for (const Ownership& range : current.ranges)
    for (const RangeOwner& owner : range.owners) owners.insert(owner.id);
  return owners;
}

/// Returns a configuration with workers 0 to 4 on nodes 1 to 5, servers 5 and 6 on nodes 5 and 4,
/// and coordinator 7 on node 1.
Configuration five_nodes(std::size_t copies) {
  std::vector<Member> members;
  for (MemberId id = 0; id < 5; ++id) members.push_back({id, 1, true, false, 1 + id});
  members.push_back({5, 1, false, true, 5});
  members.push_back({6, 1, false, true, 4});
  members.push_back({7, 1, false, false, 1});
  return first_configuration(std::move(members), 6, copies, true);
}

TEST(Configuration, ReplacesDeadOwnersWhileNodesWithoutAnOwnerAreLeft) {
  const auto first = five_nodes(2);
  ASSERT_EQ(owners_in(first), (std::set<MemberId>{5, 6}));
  const auto second = apply_until_stable(first, {.dead = {4, 5}});
  EXPECT_EQ(owners_in(second), (std::set<MemberId>{1, 6})) << "no second owner on node 4";
  EXPECT_EQ(second.fewest_replicas(), 2U);
  const auto third = apply_until_stable(second, {.dead = {3, 6}});
  EXPECT_EQ(owners_in(third), (std::set<MemberId>{1, 2}));
  const auto fourth = apply_until_stable(third, {.dead = {1}});
  EXPECT_EQ(owners_in(fourth), (std::set<MemberId>{2, 7})) << "the coordinator's node comes last";
  const auto last = apply_until_stable(fourth, {.dead = {2}});
  EXPECT_EQ(owners_in(last), std::set<MemberId>{7}) << "only one owner on each node";
  EXPECT_EQ(last.fewest_replicas(), 1U);
}

TEST(Configuration, HasAtLeastAsManyOwnersAsCopiesAndAsRequested) {
  EXPECT_EQ(owners_in(apply_until_stable(five_nodes(2), {.replication_factor = 3})).size(), 3U);
  const auto four = apply_until_stable(five_nodes(2), {.replication_factor = 2, .owners = 4});
  EXPECT_EQ(owners_in(four).size(), 4U);
  EXPECT_EQ(four.fewest_replicas(), 2U);
  EXPECT_EQ(
      owners_in(apply_until_stable(five_nodes(2), {.replication_factor = 2, .owners = 9})).size(),
      5U);
}

/// Workers 8 and 9 of node 6 ask to join. If the request of 9, which is to own, comes later, 8
/// owns.
TEST(Configuration, JoiningNodeGetsOneOwnerInWhateverOrderItsMembersJoin) {
  const Member worker{8, 1, true, false, 6};
  const Member owner{9, 1, true, true, 6};
  const PendingChanges wanted{.replication_factor = 2, .owners = 6};
  const auto join = [&](Configuration current, const Member& member) {
    PendingChanges pending = wanted;
    pending.joins = {member};
    return apply_until_stable(std::move(current), pending);
  };
  const auto all = apply_until_stable(five_nodes(2), wanted);
  ASSERT_EQ(owners_in(all).size(), 5U);
  auto owners = owners_in(all);
  owners.insert(8);
  EXPECT_EQ(owners_in(join(join(all, worker), owner)), owners);
  owners.erase(8);
  owners.insert(9);
  EXPECT_EQ(owners_in(join(join(all, owner), worker)), owners);
}

TEST(Configuration, LetsAllOwnersLeaveIfOtherMembersCanOwn) {
  const auto after = apply_until_stable(five_nodes(2), {.leaves = {3, 4, 5, 6}});
  EXPECT_EQ(owners_in(after), (std::set<MemberId>{1, 2}));
  EXPECT_EQ(after.find(5), nullptr);
  EXPECT_EQ(after.find(6), nullptr);
}

/// Server 3 leaves before worker 2, which is on the same node.
TEST(Configuration, LetsNoMemberOwnOnANodeThatLeaves) {
  std::vector<Member> members;
  for (MemberId id = 0; id < 3; ++id) members.push_back({id, 1, true, false, id + 1});
  members.push_back({3, 1, false, true, 3});
  members.push_back({4, 1, false, true, 2});
  members.push_back({5, 1, false, false, 1});
  const auto first = first_configuration(std::move(members), 3, 2, true);
  ASSERT_EQ(first.coordinator, 5U);
  EXPECT_EQ(owners_in(apply_until_stable(first, {.leaves = {3}})), (std::set<MemberId>{4, 5}));
}

/// Returns a configuration with workers 0 and 1 on node 1, workers 2 and 3 on node 2, server 4 on
/// node 1, server 5 on node 2, and member 6, which neither works nor owns, on node 1.
Configuration with_coordinator() {
  std::vector<Member> members;
  for (MemberId id = 0; id < 4; ++id) members.push_back({id, 1, true, false, 1 + id / 2});
  members.push_back({4, 1, false, true, 1});
  members.push_back({5, 1, false, true, 2});
  members.push_back({6, 1, false, false, 1});
  return first_configuration(std::move(members), 3, 2, true);
}

TEST(Coordinator, IsPreferablyAMemberThatNeitherWorksNorOwns) {
  EXPECT_EQ(with_coordinator().coordinator, 6U);
  EXPECT_EQ(first_configuration(members_of({0, 1}), 2, 2, true).coordinator, 0U);
  EXPECT_EQ(first_configuration(members_of({0, 1}), 2, 2).coordinator, std::nullopt);
}

TEST(Coordinator, HasASuccessorOnAnotherNode) {
  const Configuration first = with_coordinator();
  const auto coordinator_after = [&](PendingChanges pending) {
    pending.full = all_owners_full(first);
    const auto next = next_configuration(first, pending).next;
    EXPECT_FALSE(next->has_same_coordinator_as(first));
    return *next->coordinator;
  };
  EXPECT_EQ(coordinator_after({.dead = {6}}), 2U) << "members on its node may be dead as well";
  EXPECT_EQ(coordinator_after({.leaves = {6}}), 2U);
  EXPECT_EQ(coordinator_after({.leaves = {2, 3}, .dead = {6}}), 5U) << "2 and 3 leave soon";
  EXPECT_EQ(coordinator_after({.joins = {{6, 2, false, false, 1}}}), 2U)
      << "a new incarnation does not know the steps";
  EXPECT_EQ(coordinator_after({.joins = {{7, 1, false, false, 3}}, .dead = {6}}), 2U)
      << "a joiner does not know the steps";
  EXPECT_EQ(coordinator_after({.dead = {2, 3, 5, 6}}), 0U) << "no other member is left";
}

TEST(Coordinator, StaysAsLongAsItIsAMember) {
  const Configuration first = with_coordinator();
  const auto next = next_configuration(
      first, {.joins = {{7, 1, false, false, 3}}, .dead = {0}, .full = all_owners_full(first)});
  ASSERT_TRUE(next.next);
  EXPECT_TRUE(next.next->has_same_coordinator_as(first));
}

TEST(Configuration, BulkSynchronousJobsBeginNewOwnerEpochsIfWorkersChange) {
  const auto first = first_configuration(members_of({0, 1, 2, 3, 4, 5}), 2, 2);
  MemberId idle = 0;
  while (first.ranges[0].find(idle) != nullptr || first.ranges[1].find(idle) != nullptr) ++idle;
  const auto plain =
      next_configuration(first, {.dead = {idle}, .full = all_owners_full(first)}).next;
  const auto bsp =
      next_configuration(first, {.bsp = true, .dead = {idle}, .full = all_owners_full(first)}).next;
  ASSERT_TRUE(plain && bsp);
  for (RangeId r = 0; r < 2; ++r) {
    EXPECT_EQ(plain->ranges[r].owner_epoch, 1U);
    EXPECT_EQ(bsp->ranges[r].owner_epoch, 2U);
  }
}

TEST(Configuration, CouncilHasOneMemberOfEachNode) {
  std::vector<Member> members;
  for (MemberId id = 0; id < 12; ++id) members.push_back({id, 1, true, id % 3 == 0, 1 + id / 3});
  Configuration current = first_configuration(members, 8, 2);
  EXPECT_EQ(current.council, (std::vector<MemberId>{0, 3, 6, 9}));
  PendingChanges pending;
  pending.dead = {3};
  pending.full.assign(8, {0, 3, 6, 9});
  current = *next_configuration(current, pending).next;
  EXPECT_EQ(current.council, (std::vector<MemberId>{0, 4, 6, 9}));
}

TEST(Configurations, LeaverStaysUntilAnotherMemberHoldsItsRangesIfNoneArePlaced) {
  Configuration now;
  now.epoch = 3;
  for (MemberId id = 0; id < 3; ++id) now.members.push_back({id, 1, true, true});
  const auto members_after = [&](std::map<MemberId, std::vector<RangeId>> held) {
    const auto next = next_configuration(now, {.leaves = {0, 1}, .held = std::move(held)}).next;
    std::vector<MemberId> ids;
    for (const Member& member : next ? next->members : now.members) ids.push_back(member.id);
    return ids;
  };
  using Ids = std::vector<MemberId>;
  EXPECT_EQ(members_after({{0, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}}), (Ids{2}));
  EXPECT_EQ(members_after({{0, {0, 1}}, {1, {0, 1}}, {2, {0}}}), (Ids{1, 2})) << "one stays";
  EXPECT_EQ(members_after({{0, {0, 1}}, {1, {}}, {2, {}}}), (Ids{0, 2})) << "1 holds nothing";
  EXPECT_EQ(members_after({{1, {0, 1}}, {2, {0, 1}}}), (Ids{0, 2})) << "0 has not said";
}

/// Its request counts only in this epoch: if it lost its vote now, it would get it back in the next
/// one, and so on until it can leave.
TEST(Configurations, LeaverThatStaysKeepsItsVoteIfNodesHaveTheOnlyCopies) {
  Configuration now;
  now.epoch = 3;
  for (MemberId id = 0; id < 3; ++id) now.members.push_back({id, 1, true, true, 1 + id});
  now.council = {0, 1, 2};
  PendingChanges pending{
      .leaves = {0}, .held = {{0, {0, 1}}, {1, {}}, {2, {}}}, .node_by_node = true};
  EXPECT_EQ(next_configuration(now, pending).next, nullptr);
  pending.held[2] = {0, 1};
  const auto next = next_configuration(now, pending).next;
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->council, (std::vector<MemberId>{1, 2}));
}

TEST(Configurations, MembersOfOneNodeLeaveAtATimeIfNodesHaveTheOnlyCopies) {
  Configuration now;
  now.epoch = 3;
  for (MemberId id = 0; id < 6; ++id) now.members.push_back({id, 1, true, true, 1 + id / 2});
  PendingChanges pending{.leaves = {0, 1, 2, 3}, .node_by_node = true};
  for (MemberId id = 0; id < 6; ++id) pending.held[id] = {0, 1};
  const auto members_after = [&] {
    const auto next = next_configuration(now, pending).next;
    std::vector<MemberId> ids;
    for (const Member& member : next ? next->members : now.members) ids.push_back(member.id);
    return ids;
  };
  using Ids = std::vector<MemberId>;
  EXPECT_EQ(members_after(), (Ids{2, 3, 4, 5}));
  pending.dead = {4, 5};
  EXPECT_EQ(members_after(), (Ids{0, 1, 2, 3})) << "the dead only";
  pending.node_by_node = false;
  pending.dead.clear();
  EXPECT_EQ(members_after(), (Ids{4, 5}));
  for (Member& member : now.members) member.node = 0;
  pending.node_by_node = true;
  EXPECT_EQ(members_after(), (Ids{1, 2, 3, 4, 5})) << "each has a node of its own";
}

TEST(Configurations, RangeIsLostIfNoLivingMemberHoldsItAndNoneArePlaced) {
  Configuration now;
  now.epoch = 3;
  for (MemberId id = 0; id < 3; ++id) now.members.push_back({id, 1, true, true});
  PendingChanges pending{
      .dead = {0}, .held = {{0, {0, 1}}, {1, {0}}, {2, {}}}, .unplaced_ranges = 2};
  Successor successor = next_configuration(now, pending);
  EXPECT_FALSE(successor.next);
  EXPECT_EQ(successor.lost, std::vector<RangeId>{1}) << "only the dead member holds it";
  pending.held[2] = {1};
  successor = next_configuration(now, pending);
  ASSERT_TRUE(successor.next);
  EXPECT_TRUE(successor.lost.empty());
  EXPECT_EQ(successor.next->members.size(), 2U);
  pending.held[2].clear();
  pending.gives_up_lost_ranges = true;
  EXPECT_TRUE(next_configuration(now, pending).next) << "the job ends, and says why";
}

}  // namespace
}  // namespace starling::core
