/// Two members with one name: which of them stays, and which goes.
#include <gtest/gtest.h>

#include "tests/engine/core/one_member.hpp"

namespace starling::core {
namespace {

class Names : public OneMember {
 protected:
  /// A node with the name of `of`, somewhere else unless `at` says where.
  static NodeRecord twin(NodeId id, NodeId of, const std::string& at = {}) {
    NodeRecord one = record(id);
    one.name = record(of).name;
    if (!at.empty()) one.address = at;
    return one;
  }
  void ask_to_join(const NodeRecord& who) {
    receive({who, Digest{std::vector<std::uint64_t>(1), false}});
  }
};

TEST_F(Names, WhoComesUnderAnothersNameIsRefusedOnceThatOneSpeaks) {
  receive(1);
  ask_to_join(twin(2, 1));
  EXPECT_FALSE(state(2)) << "it is not let in";
  EXPECT_TRUE(sent<NameTaken>().empty()) << "the other may be dead";
  EXPECT_FALSE(sent_to<Ping>(1).empty()) << "so it is asked";
  for (int i = 0; i < 10; ++i) {
    forget();
    pass(50ms);
    answer_as(1);
  }
  ask_to_join(twin(2, 1));
  ASSERT_EQ(sent_to<NameTaken>(2).size(), 1U);
  const auto taken = std::get<NameTaken>(sent_to<NameTaken>(2)[0].message.body);
  EXPECT_EQ(taken.to, 2U);
  EXPECT_EQ(taken.holder, record(1));
  EXPECT_TRUE(says<MemberRefused>());
  EXPECT_FALSE(state(2));
  EXPECT_EQ(state(1), NodeState::alive);
}

TEST_F(Names, WhoComesBackAfterACrashIsLetInOnceItsFormerLifeIsDead) {
  receive(1);
  ask_to_join(twin(2, 1));
  pass(500ms);
  ask_to_join(twin(2, 1));
  EXPECT_TRUE(sent<NameTaken>().empty()) << "the former incarnation does not answer";
  receive(5, Gossip{}, {{record(1, 0, NodeState::dead), 5}});
  ask_to_join(twin(2, 1));
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_FALSE(sent_to<Digest>(2).empty());
}

TEST_F(Names, WhoComesBackAtItsOldAddressIsLetInAtOnce) {
  receive(1);
  ask_to_join(twin(2, 1, record(1).address));
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_EQ(state(1), NodeState::dead);
}

TEST_F(Names, WhoComesUnderTheNameOfThisOneIsRefusedAtOnce) {
  ask_to_join(twin(2, self_id));
  EXPECT_EQ(sent_to<NameTaken>(2).size(), 1U);
  EXPECT_FALSE(state(2));
}

/// They came in at the same time by different seed nodes, or two clusters became one.
TEST_F(Names, OfTwoMembersTheOneWithTheLowerIdStays) {
  for (const bool lower_speaks_first : {true, false}) {
    make({});
    receive(9, Gossip{}, {{twin(3, 8), 9}, {twin(4, 8), 9}});
    EXPECT_EQ(state(3), NodeState::alive);
    EXPECT_EQ(state(4), NodeState::alive) << "hearsay refuses nobody";
    pass(300ms);
    forget();
    if (!lower_speaks_first) {
      receive({twin(4, 8), Gossip{}});
      EXPECT_TRUE(sent<NameTaken>().empty()) << "the other may be dead";
      EXPECT_FALSE(sent_to<Ping>(3).empty());
    }
    receive({twin(3, 8), Gossip{}});
    ASSERT_EQ(sent_to<NameTaken>(4).size(), 1U);
    EXPECT_EQ(state(4), NodeState::dead);
    EXPECT_EQ(state(3), NodeState::alive);
  }
}

TEST_F(Names, OneThatIsToldToGoByOneWithALowerIdGoes) {
  receive({record(1), NameTaken{self_id, twin(2, self_id)}});
  EXPECT_TRUE(says<NameRefused>());
}

TEST_F(Names, OneThatIsTheOlderTellsTheOther) {
  const NodeRecord higher = twin(self_id + 1, self_id);
  receive({record(1), NameTaken{self_id, higher}});
  EXPECT_FALSE(says<NameRefused>());
  ASSERT_EQ(sent_to<NameTaken>(higher.id).size(), 1U);
  EXPECT_EQ(std::get<NameTaken>(sent_to<NameTaken>(higher.id)[0].message.body).to, higher.id);
}

TEST_F(Names, OneThatHasNotJoinedGoesWhoeverHasItsName) {
  make({.self = {}, .seeds = {"seed"}});
  receive({record(1), NameTaken{self_id, twin(self_id + 1, self_id)}});
  EXPECT_TRUE(says<NameRefused>());
}

TEST_F(Names, NobodyGoesForWordsThatAreMeantForOthersOrForAnotherName) {
  receive({record(1), NameTaken{self_id + 5, twin(2, self_id)}});
  receive({record(1), NameTaken{self_id, record(2)}});
  receive({record(1), NameTaken{self_id, record(self_id)}});
  EXPECT_FALSE(says<NameRefused>());
}

TEST_F(Names, KnocksOfManyTakeBoundedMemoryAndLetTheRightOneIn) {
  receive(1);
  for (NodeId id = 100; id < 1100; ++id) ask_to_join(twin(id, 1));
  EXPECT_EQ(member_->members().size(), 1U);
  receive(1);
  receive({record(1, 0, NodeState::left), Gossip{}});
  ask_to_join(twin(2, 1));
  EXPECT_EQ(state(2), NodeState::alive);
}

TEST_F(Names, MembersWithoutANameAreNobodysTwins) {
  for (NodeId id = 1; id <= 3; ++id) {
    NodeRecord nameless = record(id);
    nameless.name.clear();
    receive({nameless, Gossip{}});
  }
  EXPECT_EQ(member_->members().live().size(), 3U);
}

}  // namespace
}  // namespace starling::core
