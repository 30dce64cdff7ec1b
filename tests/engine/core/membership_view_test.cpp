/// Tests what one member learns about others, message by message. membership_nonsense_test.cpp has
/// messages that no correct member sends.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "starling/engine/core/wire_size.hpp"
#include "tests/engine/core/one_member.hpp"

namespace starling::core {
namespace {

// --- suspicion ----------------------------------------------------------------------------------

TEST_F(MembershipTest, TellsASuspectAboutItsSuspicionFirst) {
  for (NodeId id = 1; id <= 30; ++id) receive(id);
  receive(1, Gossip{}, {{record(2, 0, NodeState::suspect), 1}});
  pass(1s);
  for (int i = 0; i < 50; ++i) receive(static_cast<NodeId>(1000 + i));  // other news
  forget();
  receive(2, Ping{self_id, 1});
  ASSERT_EQ(sent_to<PingAck>(2).size(), 1U);
  const auto updates = sent_to<PingAck>(2)[0].message.updates;
  ASSERT_FALSE(updates.empty());
  EXPECT_EQ(updates[0].record, record(2, 0, NodeState::suspect));
}

TEST_F(MembershipTest, RefutesWithAHigherIncarnation) {
  receive(1);
  receive(1, Gossip{}, {{record(self_id, 4, NodeState::suspect), 1}});
  EXPECT_EQ(member_->self().incarnation, 5U);
  EXPECT_EQ(member_->health_score(), 1U);
  forget();
  pass(options_.gossip_every);
  ASSERT_FALSE(sent<Gossip>().empty());
  EXPECT_EQ(sent<Gossip>()[0].message.from.incarnation, 5U);
  receive(1, Gossip{}, {{record(self_id, 4, NodeState::dead), 1}});
  EXPECT_EQ(member_->self().incarnation, 5U) << "that was refuted already";
}

TEST_F(MembershipTest, RevokesSuspicionsAndDeathsThatAreRefuted) {
  for (const NodeState state_then : {NodeState::suspect, NodeState::dead}) {
    make({});
    receive(1);
    receive(1, Gossip{}, {{record(2), 2}, {record(2, 0, state_then), 1}});
    EXPECT_EQ(state(2), state_then);
    receive(1, Gossip{}, {{record(2, 0), 1}});
    EXPECT_EQ(state(2), state_then) << "the same incarnation refutes nothing";
    receive(1, Gossip{}, {{record(2, 1), 1}});
    EXPECT_EQ(state(2), NodeState::alive);
    EXPECT_EQ(changes().back(), record(2, 1));
  }
}

TEST_F(MembershipTest, SuspectsForAShorterTimeIfOthersConfirm) {
  const auto until_dead = [&](std::size_t confirmations) {
    make({});
    for (NodeId id = 1; id <= 9; ++id) receive(id);
    for (NodeId by = 1; by <= 1 + confirmations; ++by)
      receive(1, Gossip{}, {{record(9, 0, NodeState::suspect), by}});
    const Time start = now_;
    for (int i = 0; i < 2000 && state(9) == NodeState::suspect; ++i) {
      pass(10ms);
      for (NodeId id = 1; id <= 9; ++id) answer_as(id);
      forget();
    }
    return now_ - start;
  };
  const Time least = 6 * 200ms;
  EXPECT_NEAR(static_cast<double>((until_dead(3) - least).count()), 0, 2e7);
  EXPECT_NEAR(static_cast<double>((until_dead(8) - least).count()), 0, 2e7);
  EXPECT_NEAR(static_cast<double>((until_dead(0) - 6 * least).count()), 0, 2e7);
  // Half way on a scale of logarithms: log(2) / log(4).
  EXPECT_NEAR(static_cast<double>((until_dead(1) - 7 * least / 2).count()), 0, 2e7);
}

TEST_F(MembershipTest, DoesNotWaitForOtherSuspectsToConfirm) {
  // Members 3 and 4 of five die at once, and all others suspect them.
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  const Time start = now_;
  const auto suspect_by = [&](NodeId by) {
    for (NodeId id = 3; id <= 4; ++id)
      receive(1, Gossip{}, {{record(id, 0, NodeState::suspect), by}});
  };
  suspect_by(self_id);
  suspect_by(1);
  suspect_by(2);
  while (state(3) != NodeState::dead || state(4) != NodeState::dead) {
    ASSERT_LT(now_, start + 2s);
    pass(10ms);
    for (NodeId id = 1; id <= 2; ++id) answer_as(id);
    forget();
  }
  EXPECT_NEAR(static_cast<double>((now_ - start - 6 * 200ms).count()), 0, 2e7);
}

TEST_F(MembershipTest, SuspectsLongerIfItSuspectsNearlyAllOthers) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  const Time start = now_;
  for (NodeId id = 2; id <= 4; ++id) receive(1, Gossip{}, {{record(id, 0, NodeState::suspect), 1}});
  while (state(4) != NodeState::dead) {
    ASSERT_LT(now_, start + 10s);
    pass(10ms);
    answer_as(1);
    forget();
  }
  EXPECT_GT(now_ - start, 3s) << "half of the others have not confirmed";
}

TEST_F(MembershipTest, ProbesMoreSlowlyIfNobodyAnswers) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  const Time start = now_;
  while (member_->counts().probes_failed == 0) {
    ASSERT_LT(now_, start + 10s) << "no probe has failed";
    pass(1ms);
  }
  EXPECT_EQ(member_->health_score(), 1U);
  const auto probes = member_->counts().probes;
  pass(options_.probe_interval * 19 / 10);
  EXPECT_EQ(member_->counts().probes, probes) << "an interval is twice as long now";
  pass(options_.probe_interval / 5);
  EXPECT_EQ(member_->counts().probes, probes + 1);
  pass(10s);
  EXPECT_GT(member_->health_score(), 2U);
  EXPECT_LE(member_->health_score(), options_.health_score_max);
}

TEST_F(MembershipTest, SuspectsLongerIfItsHealthIsBad) {
  receive(1);
  const Time silent = now_;
  while (state(1) == NodeState::alive) {
    ASSERT_LT(now_, silent + 10s) << "it is not suspected";
    pass(1ms);
  }
  EXPECT_EQ(member_->health_score(), 1U) << "there was nobody else to ask";
  const Time start = now_;
  while (state(1) == NodeState::suspect) {
    ASSERT_LT(now_, start + 10s) << "it is not declared dead";
    pass(1ms);
  }
  EXPECT_NEAR(static_cast<double>((now_ - start - 2 * 1200ms).count()), 0, 1e7);
}

TEST_F(MembershipTest, IgnoresTimeInWhichItDidNotRun) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  receive(1, Gossip{},
          {{record(2, 0, NodeState::suspect), 1},
           {record(2, 0, NodeState::suspect), 3},
           {record(2, 0, NodeState::suspect), 4}});
  stand_still(30s);
  member_->on_timer({now_, random_, effects_});
  EXPECT_EQ(state(2), NodeState::suspect) << "its refutation may wait unread";
  EXPECT_GT(member_->health_score(), 0U);
  receive(3, Gossip{}, {{record(2, 1), 2}});
  EXPECT_EQ(state(2), NodeState::alive);
}

TEST_F(MembershipTest, TreatsADeathInRecordsAsASuspicion) {
  receive(1);
  receive(2);
  receive(1, Records{{record(2, 0, NodeState::dead)}});
  EXPECT_EQ(state(2), NodeState::suspect) << "it may still refute";
  receive(1, Gossip{}, {{record(2, 0, NodeState::dead), 1}});
  EXPECT_EQ(state(2), NodeState::dead);
}

// --- the dead -----------------------------------------------------------------------------------

TEST_F(MembershipTest, PingsDeadMembersAndSyncsWithThoseThatReturn) {
  receive(1, Gossip{}, {{record(2), 2}, {record(2, 0, NodeState::dead), 1}});
  forget();
  pass(options_.retry_every * 10);
  const auto tries = sent_to<Ping>(2);
  ASSERT_FALSE(tries.empty());
  ASSERT_FALSE(tries[0].message.updates.empty());
  EXPECT_EQ(tries[0].message.updates[0].record, record(2, 0, NodeState::dead));
  NodeRecord back = record(2, 1);
  receive({back, PingAck{0}});
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_EQ(sent_to<Digest>(2).size(), 1U);
}

TEST_F(MembershipTest, ForgetsDeadMembersAndIgnoresLateRecordsOfThem) {
  receive(1, Gossip{},
          {{record(2), 2},
           {record(2, 0, NodeState::dead), 1},
           {record(3), 3},
           {record(3, 0, NodeState::left), 1}});
  pass(options_.dead_for - 1s);
  EXPECT_EQ(state(2), NodeState::dead);
  EXPECT_EQ(state(3), NodeState::left);
  pass(2s);
  EXPECT_EQ(state(2), std::nullopt);
  EXPECT_EQ(state(3), std::nullopt);
  receive(1, Records{{record(2, 0, NodeState::dead)}});
  EXPECT_EQ(state(2), std::nullopt);
}

TEST_F(MembershipTest, DoesNotPingMembersThatHaveLeft) {
  receive(1, Gossip{}, {{record(2), 2}, {record(2, 1, NodeState::left), 2}});
  EXPECT_EQ(state(2), NodeState::left);
  forget();
  pass(options_.retry_every * 20);
  EXPECT_TRUE(sent_to<Ping>(2).empty());
}

// --- news ---------------------------------------------------------------------------------------

TEST_F(MembershipTest, GossipsNewsALimitedNumberOfTimes) {
  MembershipOptions options;
  options.probe_interval = options.retry_every = options.sync_interval = 1h;
  make(options);
  for (NodeId id = 1; id <= 100; ++id) receive(id);
  pass(1min);
  forget();
  receive(1, Gossip{}, {{record(7, 1), 7}});
  NodeRecord more = record(7, 2);
  more.workers = 9;
  receive(1, Gossip{}, {{more, 7}});
  pass(1min);
  std::size_t told = 0;
  for (const auto& send : sent<Gossip>()) {
    for (const auto& update : send.message.updates) {
      EXPECT_NE(send.address, record(7).address) << "node 7 is the source of the news";
      EXPECT_EQ(update.record, more) << "older news is replaced";
      ++told;
    }
  }
  EXPECT_NEAR(static_cast<double>(told), options.gossip_repeats * std::log2(102), 2);
}

TEST_F(MembershipTest, KeepsMessagesWithinTheSizeLimit) {
  MembershipOptions options;
  options.message_bytes = 600;
  make(options);
  for (NodeId id = 1; id <= 300; ++id) receive(id);
  pass(5s);
  std::size_t full = 0;
  for (const auto& effect : effects_)
    if (const auto* send = std::get_if<MembershipSend>(&effect)) {
      EXPECT_LE(wire_size(send->message), 600U);
      full += send->message.updates.size() > 5 ? 1 : 0;
    }
  EXPECT_GT(full, 100U);
}

TEST_F(MembershipTest, GossipsItsNewWorkerCountWithANewIncarnation) {
  receive(1);
  forget();
  member_->offer({now_, random_, effects_}, 12);
  pass(options_.gossip_every);
  ASSERT_FALSE(sent<Gossip>().empty());
  EXPECT_EQ(sent<Gossip>()[0].message.from.workers, 12U);
  EXPECT_EQ(sent<Gossip>()[0].message.from.incarnation, 1U);
}

TEST_F(MembershipTest, AcceptsChangesOfARecordOnlyWithANewIncarnation) {
  receive(1);
  NodeRecord wrong = record(1, 0, NodeState::suspect);
  wrong.address = "elsewhere";
  receive(2, Gossip{}, {{wrong, 2}});
  EXPECT_EQ(member_->nodes().find(1)->record.address, record(1).address);
  NodeRecord moved = record(1, 1);
  moved.workers = 5;
  receive({moved, Gossip{}});
  EXPECT_EQ(changes().back(), moved);
}

TEST_F(MembershipTest, AnnouncesThatItLeavesAndReportsWhenItHasLeft) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  forget();
  member_->leave({now_, random_, effects_});
  EXPECT_EQ(sent<Gossip>().size(), 3U) << "without a timer";
  for (const auto& send : sent<Gossip>()) {
    EXPECT_EQ(send.message.from.state, NodeState::left);
    EXPECT_EQ(send.message.from.incarnation, 1U);
  }
  receive(1, Gossip{}, {{record(self_id, 1, NodeState::dead), 1}});
  pass(5s);
  EXPECT_TRUE(has_effect<HasLeft>());
  EXPECT_TRUE(sent<Ping>().empty());
  EXPECT_EQ(member_->self().incarnation, 1U) << "a member that leaves does not refute";
  EXPECT_EQ(member_->self().state, NodeState::left);
  receive(1, Ping{self_id, 1});
  ASSERT_EQ(sent_to<PingAck>(1).size(), 1U);
  EXPECT_EQ(sent_to<PingAck>(1)[0].message.from.state, NodeState::left);
}

}  // namespace
}  // namespace starling::core
