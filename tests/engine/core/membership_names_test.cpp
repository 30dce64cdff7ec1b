/// Tests which of two members with the same name stays.
#include <gtest/gtest.h>

#include "tests/engine/core/one_member.hpp"

namespace starling::core {
namespace {

class MembershipNames : public MembershipTest {
 protected:
  /// Returns a node with the name of node `of`, at address `at`, or else at an address of its own.
  static NodeRecord with_name_of(NodeId id, NodeId of, const std::string& at = {}) {
    NodeRecord one = record(id);
    one.name = record(of).name;
    if (!at.empty()) one.address = at;
    return one;
  }
  void ask_to_join(const NodeRecord& who) {
    receive({who, Digest{std::vector<std::uint64_t>(1), false}});
  }
};

TEST_F(MembershipNames, RefusesAJoinerOnceTheHolderOfItsNameAnswers) {
  receive(1);
  ask_to_join(with_name_of(2, 1));
  EXPECT_FALSE(state(2)) << "it has not joined";
  EXPECT_TRUE(sent<NameTaken>().empty()) << "the holder of the name may be dead";
  EXPECT_FALSE(sent_to<Ping>(1).empty()) << "it is probed";
  for (int i = 0; i < 10; ++i) {
    forget();
    pass(50ms);
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

TEST_F(MembershipNames, AddsARestartedNodeOnceItsFormerIncarnationIsDead) {
  receive(1);
  ask_to_join(with_name_of(2, 1));
  pass(500ms);
  ask_to_join(with_name_of(2, 1));
  EXPECT_TRUE(sent<NameTaken>().empty()) << "the former incarnation does not answer";
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

TEST_F(MembershipNames, RefusesAJoinerWithItsOwnNameAtOnce) {
  ask_to_join(with_name_of(2, self_id));
  EXPECT_EQ(sent_to<NameTaken>(2).size(), 1U);
  EXPECT_FALSE(state(2));
}

/// Two nodes with one name become members if they join at the same time by different seed nodes, or
/// if a partition heals.
TEST_F(MembershipNames, KeepsTheMemberWithTheLowerId) {
  for (const bool lower_speaks_first : {true, false}) {
    make({});
    receive(9, Gossip{}, {{with_name_of(3, 8), 9}, {with_name_of(4, 8), 9}});
    EXPECT_EQ(state(3), NodeState::alive);
    EXPECT_EQ(state(4), NodeState::alive) << "gossip of a third node refuses no member";
    pass(300ms);
    forget();
    if (!lower_speaks_first) {
      receive({with_name_of(4, 8), Gossip{}});
      EXPECT_TRUE(sent<NameTaken>().empty()) << "the holder of the name may be dead";
      EXPECT_FALSE(sent_to<Ping>(3).empty());
    }
    receive({with_name_of(3, 8), Gossip{}});
    ASSERT_EQ(sent_to<NameTaken>(4).size(), 1U);
    EXPECT_EQ(state(4), NodeState::dead);
    EXPECT_EQ(state(3), NodeState::alive);
  }
}

TEST_F(MembershipNames, EndsIfAMemberWithALowerIdHasItsName) {
  receive({record(1), NameTaken{self_id, with_name_of(2, self_id)}});
  EXPECT_TRUE(has_effect<NameRefused>());
}

TEST_F(MembershipNames, RefusesAMemberWithAHigherIdThatHasItsName) {
  const NodeRecord higher = with_name_of(self_id + 1, self_id);
  receive({record(1), NameTaken{self_id, higher}});
  EXPECT_FALSE(has_effect<NameRefused>());
  ASSERT_EQ(sent_to<NameTaken>(higher.id).size(), 1U);
  EXPECT_EQ(std::get<NameTaken>(sent_to<NameTaken>(higher.id)[0].message.body).to, higher.id);
}

TEST_F(MembershipNames, JoinerEndsIfAnyMemberHasItsName) {
  make({.self = {}, .seeds = {"seed"}});
  receive({record(1), NameTaken{self_id, with_name_of(self_id + 1, self_id)}});
  EXPECT_TRUE(has_effect<NameRefused>());
}

TEST_F(MembershipNames, IgnoresNameTakenForOtherNodesAndOtherNames) {
  receive({record(1), NameTaken{self_id + 5, with_name_of(2, self_id)}});
  receive({record(1), NameTaken{self_id, record(2)}});
  receive({record(1), NameTaken{self_id, record(self_id)}});
  EXPECT_FALSE(has_effect<NameRefused>());
}

TEST_F(MembershipNames, ManyJoinAttemptsTakeBoundedMemory) {
  receive(1);
  for (NodeId id = 100; id < 1100; ++id) ask_to_join(with_name_of(id, 1));
  EXPECT_EQ(member_->nodes().size(), 1U);
  receive(1);
  receive({record(1, 0, NodeState::left), Gossip{}});
  ask_to_join(with_name_of(2, 1));
  EXPECT_EQ(state(2), NodeState::alive);
}

TEST_F(MembershipNames, MembersWithoutANameDoNotConflict) {
  for (NodeId id = 1; id <= 3; ++id) {
    NodeRecord nameless = record(id);
    nameless.name.clear();
    receive({nameless, Gossip{}});
  }
  EXPECT_EQ(member_->nodes().live().size(), 3U);
}

}  // namespace
}  // namespace starling::core
