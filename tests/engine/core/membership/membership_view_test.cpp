/// Tests what a node learns about the other nodes from single messages.
/// membership_nonsense_test.cpp tests messages that no correct node sends.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "starling/engine/core/wire_size.hpp"
#include "tests/engine/core/membership/membership_fixture.hpp"

namespace starling::core {
namespace {

// --- suspicion ----------------------------------------------------------------------------------

TEST_F(MembershipTest, TellsASuspectFirstThatItIsSuspected) {
  for (NodeId id = 1; id <= 30; ++id) receive(id);
  receive(1, Gossip{}, {{record(2, 0, NodeState::suspect), 1}});
  advance(1s);
  for (int i = 0; i < 50; ++i) receive(static_cast<NodeId>(1000 + i));  // other records to gossip
  clear_effects();
  receive(2, Ping{self_id, 1});
  ASSERT_EQ(sent_to<PingAck>(2).size(), 1U);
  const auto updates = sent_to<PingAck>(2)[0].message.updates;
  ASSERT_FALSE(updates.empty());
  EXPECT_EQ(updates[0].record, record(2, 0, NodeState::suspect));
}

TEST_F(MembershipTest, RefutesWithAHigherIncarnation) {
  receive(1);
  receive(1, Gossip{}, {{record(self_id, 4, NodeState::suspect), 1}});
  EXPECT_EQ(membership_->self().incarnation, 5U);
  EXPECT_EQ(membership_->health_score(), 1U);
  clear_effects();
  advance(options_.gossip_every);
  ASSERT_FALSE(sent<Gossip>().empty());
  EXPECT_EQ(sent<Gossip>()[0].message.from.incarnation, 5U);
  receive(1, Gossip{}, {{record(self_id, 4, NodeState::dead), 1}});
  EXPECT_EQ(membership_->self().incarnation, 5U) << "that was refuted already";
}

TEST_F(MembershipTest, RevokesSuspicionsAndDeathsThatAreRefuted) {
  for (const NodeState state_then : {NodeState::suspect, NodeState::dead}) {
    start_with({});
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
  const auto time_until_dead = [&](std::size_t confirmations) {
    start_with({});
    for (NodeId id = 1; id <= 9; ++id) receive(id);
    for (NodeId by = 1; by <= 1 + confirmations; ++by)
      receive(1, Gossip{}, {{record(9, 0, NodeState::suspect), by}});
    const Time start = now_;
    for (int i = 0; i < 2000 && state(9) == NodeState::suspect; ++i) {
      advance(10ms);
      for (NodeId id = 1; id <= 9; ++id) answer_as(id);
      clear_effects();
    }
    return now_ - start;
  };
  const Time shortest = 6 * 200ms;
  EXPECT_NEAR(static_cast<double>((time_until_dead(3) - shortest).count()), 0, 2e7);
  EXPECT_NEAR(static_cast<double>((time_until_dead(8) - shortest).count()), 0, 2e7);
  EXPECT_NEAR(static_cast<double>((time_until_dead(0) - 6 * shortest).count()), 0, 2e7);
  // One of three confirmations is half way on a logarithmic scale: log(2) / log(4).
  EXPECT_NEAR(static_cast<double>((time_until_dead(1) - 7 * shortest / 2).count()), 0, 2e7);
}

TEST_F(MembershipTest, DoesNotWaitForOtherSuspectsToConfirm) {
  // Nodes 3 and 4 of five die at the same time, and all others suspect them.
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
    advance(10ms);
    for (NodeId id = 1; id <= 2; ++id) answer_as(id);
    clear_effects();
  }
  EXPECT_NEAR(static_cast<double>((now_ - start - 6 * 200ms).count()), 0, 2e7);
}

TEST_F(MembershipTest, SuspectsLongerIfItSuspectsNearlyAllOthers) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  const Time start = now_;
  for (NodeId id = 2; id <= 4; ++id) receive(1, Gossip{}, {{record(id, 0, NodeState::suspect), 1}});
  while (state(4) != NodeState::dead) {
    ASSERT_LT(now_, start + 10s);
    advance(10ms);
    answer_as(1);
    clear_effects();
  }
  EXPECT_GT(now_ - start, 3s) << "half of the others have not confirmed";
}

TEST_F(MembershipTest, ProbesMoreSlowlyIfNobodyAnswers) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  const Time start = now_;
  while (membership_->counts().probes_failed == 0) {
    ASSERT_LT(now_, start + 10s) << "no probe has failed";
    advance(1ms);
  }
  EXPECT_EQ(membership_->health_score(), 1U);
  const auto probes = membership_->counts().probes;
  advance(options_.probe_interval * 19 / 10);
  EXPECT_EQ(membership_->counts().probes, probes) << "an interval is twice as long now";
  advance(options_.probe_interval / 5);
  EXPECT_EQ(membership_->counts().probes, probes + 1);
  advance(10s);
  EXPECT_GT(membership_->health_score(), 2U);
  EXPECT_LE(membership_->health_score(), options_.health_score_max);
}

TEST_F(MembershipTest, SuspectsLongerIfItsHealthIsBad) {
  receive(1);
  const Time silent = now_;
  while (state(1) == NodeState::alive) {
    ASSERT_LT(now_, silent + 10s) << "it is not suspected";
    advance(1ms);
  }
  EXPECT_EQ(membership_->health_score(), 1U) << "there was nobody else to ask";
  const Time start = now_;
  while (state(1) == NodeState::suspect) {
    ASSERT_LT(now_, start + 10s) << "it is not declared dead";
    advance(1ms);
  }
  EXPECT_NEAR(static_cast<double>((now_ - start - 2 * 1200ms).count()), 0, 1e7);
}

TEST_F(MembershipTest, IgnoresTimeInWhichItDidNotRun) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  receive(1, Gossip{},
          {{record(2, 0, NodeState::suspect), 1},
           {record(2, 0, NodeState::suspect), 3},
           {record(2, 0, NodeState::suspect), 4}});
  advance_without_timers(30s);
  membership_->on_timer({now_, random_, effects_});
  EXPECT_EQ(state(2), NodeState::suspect) << "its refutation may be among the unread messages";
  EXPECT_GT(membership_->health_score(), 0U);
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

// --- dead nodes ---------------------------------------------------------------------------------

TEST_F(MembershipTest, PingsDeadNodesAndSyncsWithThoseThatReturn) {
  receive(1, Gossip{}, {{record(2), 2}, {record(2, 0, NodeState::dead), 1}});
  clear_effects();
  advance(options_.ping_dead_every * 10);
  const auto tries = sent_to<Ping>(2);
  ASSERT_FALSE(tries.empty());
  ASSERT_FALSE(tries[0].message.updates.empty());
  EXPECT_EQ(tries[0].message.updates[0].record, record(2, 0, NodeState::dead));
  NodeRecord back = record(2, 1);
  receive({back, PingAck{0}});
  EXPECT_EQ(state(2), NodeState::alive);
  EXPECT_EQ(sent_to<Digest>(2).size(), 1U);
}

TEST_F(MembershipTest, ForgetsDeadNodesAndIgnoresLateRecordsOfThem) {
  receive(1, Gossip{},
          {{record(2), 2},
           {record(2, 0, NodeState::dead), 1},
           {record(3), 3},
           {record(3, 0, NodeState::left), 1}});
  advance(options_.forget_dead_after - 1s);
  EXPECT_EQ(state(2), NodeState::dead);
  EXPECT_EQ(state(3), NodeState::left);
  advance(2s);
  EXPECT_EQ(state(2), std::nullopt);
  EXPECT_EQ(state(3), std::nullopt);
  receive(1, Records{{record(2, 0, NodeState::dead)}});
  EXPECT_EQ(state(2), std::nullopt);
}

TEST_F(MembershipTest, DoesNotPingNodesThatHaveLeft) {
  receive(1, Gossip{}, {{record(2), 2}, {record(2, 1, NodeState::left), 2}});
  EXPECT_EQ(state(2), NodeState::left);
  clear_effects();
  advance(options_.ping_dead_every * 20);
  EXPECT_TRUE(sent_to<Ping>(2).empty());
}

// --- gossip -------------------------------------------------------------------------------------

TEST_F(MembershipTest, GossipsAChangeALimitedNumberOfTimes) {
  MembershipOptions options;
  options.probe_interval = options.ping_dead_every = options.sync_interval = 1h;
  start_with(options);
  for (NodeId id = 1; id <= 100; ++id) receive(id);
  advance(1min);
  clear_effects();
  receive(1, Gossip{}, {{record(7, 1), 7}});
  NodeRecord latest = record(7, 2);
  latest.workers = 9;
  receive(1, Gossip{}, {{latest, 7}});
  advance(1min);
  std::size_t times_sent = 0;
  for (const auto& send : sent<Gossip>()) {
    for (const auto& update : send.message.updates) {
      EXPECT_NE(send.address, record(7).address) << "node 7 knows its own change";
      EXPECT_EQ(update.record, latest) << "only the latest record is sent";
      ++times_sent;
    }
  }
  EXPECT_NEAR(static_cast<double>(times_sent), options.gossip_repeats * std::log2(102), 2);
}

TEST_F(MembershipTest, KeepsMessagesWithinTheSizeLimit) {
  MembershipOptions options;
  options.message_bytes = 600;
  start_with(options);
  for (NodeId id = 1; id <= 300; ++id) receive(id);
  advance(5s);
  std::size_t full_messages = 0;
  for (const auto& effect : effects_)
    if (const auto* send = std::get_if<MembershipSend>(&effect)) {
      EXPECT_LE(wire_size(send->message), 600U);
      full_messages += send->message.updates.size() > 5 ? 1 : 0;
    }
  EXPECT_GT(full_messages, 100U);
}

TEST_F(MembershipTest, GossipsItsNewWorkerCountWithANewIncarnation) {
  receive(1);
  clear_effects();
  membership_->offer({now_, random_, effects_}, 12);
  advance(options_.gossip_every);
  ASSERT_FALSE(sent<Gossip>().empty());
  EXPECT_EQ(sent<Gossip>()[0].message.from.workers, 12U);
  EXPECT_EQ(sent<Gossip>()[0].message.from.incarnation, 1U);
}

TEST_F(MembershipTest, AcceptsChangesOfARecordOnlyWithANewIncarnation) {
  receive(1);
  NodeRecord wrong = record(1, 0, NodeState::suspect);
  wrong.workers = 77;
  receive(2, Gossip{}, {{wrong, 2}});
  EXPECT_EQ(membership_->nodes().find(1)->record.state, NodeState::suspect);
  EXPECT_EQ(membership_->nodes().find(1)->record.workers, record(1).workers);
  NodeRecord moved = record(1, 1);
  moved.workers = 5;
  receive({moved, Gossip{}});
  EXPECT_EQ(changes().back(), moved);
}

/// A node that replaced the address of another one could send in its name.
TEST_F(MembershipTest, IgnoresRecordsWithAnotherAddressOfANode) {
  receive(1);
  NodeRecord stolen = record(1, 7);
  stolen.address = record(2).address;
  receive({stolen, Gossip{}});
  receive(2, Gossip{}, {{stolen, 2}});
  receive(2, Records{{stolen}});
  EXPECT_EQ(membership_->nodes().find(1)->record, record(1));
}

TEST_F(MembershipTest, AnnouncesThatItLeavesAndReportsWhenItHasLeft) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  clear_effects();
  membership_->leave({now_, random_, effects_});
  EXPECT_EQ(sent<Gossip>().size(), 3U) << "sent at once, without a timer";
  for (const auto& send : sent<Gossip>()) {
    EXPECT_EQ(send.message.from.state, NodeState::left);
    EXPECT_EQ(send.message.from.incarnation, 1U);
  }
  receive(1, Gossip{}, {{record(self_id, 1, NodeState::dead), 1}});
  advance(5s);
  EXPECT_TRUE(has_effect<HasLeft>());
  EXPECT_TRUE(sent<Ping>().empty());
  EXPECT_EQ(membership_->self().incarnation, 1U) << "a node that leaves does not refute";
  EXPECT_EQ(membership_->self().state, NodeState::left);
  receive(1, Ping{self_id, 1});
  ASSERT_EQ(sent_to<PingAck>(1).size(), 1U);
  EXPECT_EQ(sent_to<PingAck>(1)[0].message.from.state, NodeState::left);
}

}  // namespace
}  // namespace starling::core
