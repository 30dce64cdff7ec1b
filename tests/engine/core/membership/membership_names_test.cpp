/// Tests which of two nodes with the same name stays in the cluster.
#include <gtest/gtest.h>

#include "tests/engine/core/membership/membership_fixture.hpp"

namespace starling::core {
namespace {

class MembershipNames : public MembershipTest {
 protected:
  /// Returns a record of node `id` with the name of node `namesake`. Without `address`, the node
  /// has its own address.
  static NodeRecord with_name_of(NodeId id, NodeId namesake, const std::string& address = {}) {
    NodeRecord result = record(id);
    result.name = record(namesake).name;
    if (!address.empty()) result.address = address;
    return result;
  }
  void ask_to_join(const NodeRecord& joiner) {
    receive({joiner, Digest{std::vector<std::uint64_t>(1), false}});
  }
};

TEST_F(MembershipNames, RefusesAJoinerOnceTheHolderOfItsNameAnswers) {
  receive(1);
  ask_to_join(with_name_of(2, 1));
  EXPECT_FALSE(state(2)) << "node 2 has not joined";
  EXPECT_TRUE(sent<NameTaken>().empty()) << "node 3, which has precedence, may be dead";
  EXPECT_FALSE(sent_to<Ping>(1).empty()) << "the holder of the name is probed";
  for (int i = 0; i < 10; ++i) {
    clear_effects();
    advance(50ms);
    answer_as(1);
  }
  ask_to_join(with_name_of(2, 1));
  ASSERT_EQ(sent_to<NameTaken>(2).size(), 1U);
  const auto taken = std::get<NameTaken>(sent_to<NameTaken>(2)[0].message.body);
  EXPECT_EQ(taken.to, 2U);
  EXPECT_EQ(taken.holder, record(1));
  EXPECT_TRUE(has_effect<NodeRefused>());
  EXPECT_FALSE(state(2));
  EXPECT_EQ(state(1), NodeState::alive);
}

TEST_F(MembershipNames, AddsARestartedNodeOnceItsFormerProcessIsDead) {
  receive(1);
  ask_to_join(with_name_of(2, 1));
  advance(500ms);
  ask_to_join(with_name_of(2, 1));
  EXPECT_TRUE(sent<NameTaken>().empty()) << "the former process does not answer";
  receive(5, Gossip{}, {{record(1, 0, NodeState::dead), 5}});
  ask_to_join(with_name_of(2, 1));
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_FALSE(sent_to<Digest>(2).empty());
}

TEST_F(MembershipNames, AddsARestartedNodeAtItsOldAddressAtOnce) {
  receive(1);
  ask_to_join(with_name_of(2, 1, record(1).address));
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_EQ(state(1), NodeState::dead);
}

TEST_F(MembershipNames, RefusesAJoinerWithTheNameOfThisNodeAtOnce) {
  ask_to_join(with_name_of(2, self_id));
  EXPECT_EQ(sent_to<NameTaken>(2).size(), 1U);
  EXPECT_FALSE(state(2));
}

/// Two nodes with the same name can be in a cluster if they joined at the same time through
/// different seed nodes, or before a partition healed.
TEST_F(MembershipNames, KeepsTheNodeWithTheLowerId) {
  for (const bool lower_speaks_first : {true, false}) {
    start_with({});
    receive(9, Gossip{}, {{with_name_of(3, 8), 9}, {with_name_of(4, 8), 9}});
    EXPECT_EQ(state(3), NodeState::alive);
    EXPECT_EQ(state(4), NodeState::alive) << "gossip from a third node decides nothing";
    advance(300ms);
    clear_effects();
    if (!lower_speaks_first) {
      receive({with_name_of(4, 8), Gossip{}});
      EXPECT_TRUE(sent<NameTaken>().empty()) << "node 3, which has precedence, may be dead";
      EXPECT_FALSE(sent_to<Ping>(3).empty());
    }
    receive({with_name_of(3, 8), Gossip{}});
    ASSERT_EQ(sent_to<NameTaken>(4).size(), 1U);
    EXPECT_EQ(state(4), NodeState::dead);
    EXPECT_EQ(state(3), NodeState::alive);
  }
}

TEST_F(MembershipNames, EndsIfANodeWithALowerIdHasItsName) {
  receive({record(1), NameTaken{self_id, with_name_of(2, self_id)}});
  EXPECT_TRUE(has_effect<MustLeave>());
}

TEST_F(MembershipNames, RefusesANodeWithAHigherIdThatHasItsName) {
  const NodeRecord higher = with_name_of(self_id + 1, self_id);
  receive({record(1), NameTaken{self_id, higher}});
  EXPECT_FALSE(has_effect<MustLeave>());
  ASSERT_EQ(sent_to<NameTaken>(higher.id).size(), 1U);
  EXPECT_EQ(std::get<NameTaken>(sent_to<NameTaken>(higher.id)[0].message.body).to, higher.id);
}

TEST_F(MembershipNames, JoinerEndsIfAnyNodeHasItsName) {
  start_with({.self = {}, .seeds = {"seed"}});
  receive({record(1), NameTaken{self_id, with_name_of(self_id + 1, self_id)}});
  EXPECT_TRUE(has_effect<MustLeave>());
}

TEST_F(MembershipNames, IgnoresNameTakenForOtherNodesAndOtherNames) {
  receive({record(1), NameTaken{self_id + 5, with_name_of(2, self_id)}});
  receive({record(1), NameTaken{self_id, record(2)}});
  receive({record(1), NameTaken{self_id, record(self_id)}});
  EXPECT_FALSE(has_effect<MustLeave>());
}

TEST_F(MembershipNames, AddsAJoinerAfterManyAttemptsOnceTheHolderHasLeft) {
  receive(1);
  for (NodeId id = 100; id < 1100; ++id) ask_to_join(with_name_of(id, 1));
  EXPECT_EQ(membership_->nodes().size(), 1U);
  receive(1);
  receive({record(1, 0, NodeState::left), Gossip{}});
  ask_to_join(with_name_of(2, 1));
  EXPECT_EQ(state(2), NodeState::alive);
}

TEST_F(MembershipNames, NodesWithoutANameDoNotConflict) {
  for (NodeId id = 1; id <= 3; ++id) {
    NodeRecord nameless = record(id);
    nameless.name.clear();
    receive({nameless, Gossip{}});
  }
  EXPECT_EQ(membership_->nodes().live().size(), 3U);
}

}  // namespace
}  // namespace starling::core
