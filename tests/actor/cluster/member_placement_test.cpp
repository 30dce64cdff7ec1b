/// Tests which members a job on several nodes has, and which ids they get.
#include "starling/actor/cluster/member_placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace starling::actor {
namespace {

core::Configuration configuration_of(std::vector<core::Member> members,
                                     std::vector<core::MemberIncarnation> departed) {
  core::Configuration configuration;
  configuration.members = std::move(members);
  configuration.departed = std::move(departed);
  return configuration;
}

TEST(MemberPlacement, GivesNewMembersRandomIdsThatWereNeverUsed) {
  const auto configuration =
      configuration_of({{0, 1, true, true, 1}, {2, 1, true, true, 2}}, {{1, 7}});
  std::set<core::MemberId> first;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    const auto all = assign_member_ids(members_of_joining_node(core::Mode::central, 3, 1),
                                       configuration, {}, 8, random);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_TRUE(all[0].works && !all[0].owns && all[0].node == 3);
    EXPECT_TRUE(!all[1].works && all[1].owns && all[1].node == 3);
    EXPECT_NE(all[0].id, all[1].id);
    for (const core::Member& member : all) {
      EXPECT_GE(member.id, 3U);
      EXPECT_LT(member.id, 8U);
      EXPECT_GE(member.incarnation, 1U);
    }
    first.insert(all[0].id);
  }
  EXPECT_EQ(first.size(), 5U);
}

TEST(MemberPlacement, AJoiningNodeHasTheGivenWorkersAndOneOwner) {
  for (const core::Mode mode : {core::Mode::peer, core::Mode::hybrid, core::Mode::central}) {
    const auto all = members_of_joining_node(mode, 3, 4);
    EXPECT_EQ(std::ranges::count(all, true, &core::Member::works), 4);
    EXPECT_EQ(std::ranges::count(all, true, &core::Member::owns), 1);
    EXPECT_EQ(all.size(), core::has_servers(mode) ? 5U : 4U);
  }
}

TEST(MemberPlacement, GivesUsedIdsLaterIncarnationsIfNoIdIsUnused) {
  const auto configuration =
      configuration_of({{0, 1, true, true, 1}}, {{1, 7}, {2, UINT32_MAX}, {3, UINT32_MAX - 1}});
  const std::vector<core::Member> members(3, {0, 0, true, false, 2});
  std::set<core::MemberId> ids;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random{seed};
    const auto all = assign_member_ids(members, configuration, {}, 4, random);
    ASSERT_EQ(all.size(), 2U);
    for (const core::Member& member : all) {
      EXPECT_FALSE(configuration.is_or_was_member(member.id, member.incarnation))
          << member.id << " " << member.incarnation;
      ids.insert(member.id);
    }
  }
  EXPECT_EQ(ids, (std::set<core::MemberId>{1, 3}));
}

TEST(MemberPlacement, GivesAnIdToManyIncarnationsOneAfterAnother) {
  auto configuration = configuration_of({{0, 1, true, true, 1}}, {{1, 0}});
  Random random{1};
  for (int i = 0; i < 1000; ++i) {
    const auto all = assign_member_ids({{0, 0, true, false, 2}}, configuration, {}, 2, random);
    ASSERT_EQ(all.size(), 1U) << i;
    configuration.departed = {{all[0].id, all[0].incarnation}};
  }
}

/// The ids that a node has given to other joining members are not in the configuration yet.
TEST(MemberPlacement, GivesNoIdThatIsTaken) {
  const auto configuration = configuration_of({{0, 1, true, true, 1}}, {{3, 7}});
  const std::vector<core::Member> members(3, {0, 0, true, false, 2});
  const std::vector<core::MemberId> taken{1, 3};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random{seed};
    const auto all = assign_member_ids(members, configuration, taken, 5, random);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(std::min(all[0].id, all[1].id), 2U);
    EXPECT_EQ(std::max(all[0].id, all[1].id), 4U);
  }
}

const std::vector<std::uint64_t> five_nodes{11, 12, 13, 14, 15};

/// Returns the node of each owner.
std::multiset<std::uint64_t> nodes_that_own(const std::vector<core::Member>& all) {
  std::multiset<std::uint64_t> nodes;
  for (const core::Member& member : all)
    if (member.owns) nodes.insert(member.node);
  return nodes;
}

TEST(MemberPlacement, PlacesTheRequestedOwnersOnDifferentNodes) {
  for (const core::Mode mode : {core::Mode::peer, core::Mode::hybrid, core::Mode::central})
    for (std::size_t workers = 1; workers <= 7; ++workers)
      for (std::size_t owners = 1; owners <= 7; ++owners) {
        const auto nodes = nodes_that_own(initial_members(mode, workers, owners, five_nodes));
        const bool peers = mode == core::Mode::peer;
        EXPECT_EQ(nodes.size(),
                  std::min<std::size_t>(5, peers ? std::max(workers, owners) : owners));
        for (const std::uint64_t node : nodes) EXPECT_EQ(nodes.count(node), 1U);
      }
}

TEST(MemberPlacement, EachNodeHasAnInitialMember) {
  for (const core::Mode mode : {core::Mode::peer, core::Mode::hybrid, core::Mode::central})
    for (std::size_t workers = 1; workers <= 7; ++workers) {
      const auto all = initial_members(mode, workers, 2, five_nodes);
      std::set<std::uint64_t> nodes;
      for (core::MemberId id = 0; id < all.size(); ++id) {
        EXPECT_EQ(all[id].id, id);
        nodes.insert(all[id].node);
      }
      EXPECT_EQ(nodes.size(), 5U);
      EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(all, true, &core::Member::works)),
                workers);
    }
}

}  // namespace
}  // namespace starling::actor
