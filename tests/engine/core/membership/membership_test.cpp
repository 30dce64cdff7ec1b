/// Tests how a node joins a cluster and probes other nodes, message by message.
/// membership_view_test.cpp tests what it learns about other nodes, and
/// tests/engine/sim/membership_test.cpp tests whole clusters.
#include <gtest/gtest.h>

#include <set>

#include "starling/engine/core/wire_size.hpp"
#include "tests/engine/core/membership/membership_fixture.hpp"

namespace starling::core {
namespace {

// --- joining ------------------------------------------------------------------------------------

TEST_F(MembershipTest, NamesANodeThatOnlyOthersReach) {
  for (const NodeId id : {1, 2}) receive(id);
  for (int i = 0; i < 40; ++i) {
    clear_effects();
    advance(50ms);
    answer_as(2);
    for (const auto& send : sent_to<PingRequest>(2))
      receive(2, PingAck{std::get<PingRequest>(send.message.body).sequence});
  }
  EXPECT_EQ(state(1), NodeState::alive);
  EXPECT_TRUE(membership_->is_silent(1));
  EXPECT_FALSE(membership_->is_silent(2));
  receive(1);
  EXPECT_FALSE(membership_->is_silent(1));
}

TEST_F(MembershipTest, HasJoinedAtOnceWithoutSeedNodes) {
  EXPECT_TRUE(membership_->joined());
  advance(5s);
  EXPECT_TRUE(sent<Ping>().empty());
  EXPECT_TRUE(sent<Digest>().empty());
}

TEST_F(MembershipTest, AsksEachSeedNodeInTurnUntilOneAnswers) {
  MembershipOptions options;
  options.seeds = {"host:1", "host:2", record(self_id).address};
  start_with(options);
  EXPECT_FALSE(membership_->joined());
  advance(options_.join_retry * 3);
  EXPECT_EQ(sent<Digest>().size(), 4U);
  EXPECT_EQ(sent_to<Digest>(1).size(), 2U);
  EXPECT_EQ(sent_to<Digest>(2).size(), 2U) << "a node never asks its own address";
  EXPECT_FALSE(has_effect<HasJoined>());
  receive(2, Records{{record(3)}});
  receive(2, Digest{.buckets = {1}, .answer = true});
  EXPECT_TRUE(membership_->joined());
  EXPECT_TRUE(has_effect<HasJoined>());
  EXPECT_EQ(state(3), NodeState::alive);
  clear_effects();
  advance(options_.join_retry * 4);
  for (const auto& send : sent<Digest>()) EXPECT_NE(send.address, "host:1");
}

/// A seed node that knows this node would otherwise declare it dead some seconds later.
TEST_F(MembershipTest, TellsTheSeedNodesThatItLeavesBeforeOneHasAnswered) {
  MembershipOptions options;
  options.seeds = {record(1).address, record(2).address};
  start_with(options);
  clear_effects();
  membership_->leave({now_, random_, effects_});
  for (const NodeId seed : {1, 2}) {
    const auto told = sent_to<Gossip>(seed);
    ASSERT_EQ(told.size(), 1U) << seed;
    EXPECT_EQ(told.front().message.from.state, NodeState::left);
  }
  EXPECT_TRUE(has_effect<HasLeft>());
}

TEST_F(MembershipTest, SendsAJoinerAllRecordsAndAsksForItsRecords) {
  for (NodeId id = 1; id <= 20; ++id) receive(id);
  clear_effects();
  receive(50, Digest{.buckets = {0}});
  std::set<NodeId> received_ids;
  for (const auto& send : sent_to<Records>(50))
    for (const auto& received : std::get<Records>(send.message.body).records)
      received_ids.insert(received.id);
  EXPECT_EQ(received_ids.size(), 21U) << "20 other nodes and itself";
  ASSERT_EQ(sent_to<Digest>(50).size(), 1U);
  EXPECT_TRUE(std::get<Digest>(sent_to<Digest>(50)[0].message.body).answer);
}

TEST_F(MembershipTest, SendsOnlyTheBucketsThatDiffer) {
  for (NodeId id = 1; id <= 200; ++id) receive(id);
  NodeDigest digest;
  for (NodeId id = 1; id <= 200; ++id)
    digest.toggle(record(id, id == 17 ? 1 : 0));  // node 1 knows a newer record of node 17
  digest.toggle(record(self_id));
  clear_effects();
  receive(1, Digest{.buckets = digest.folded(64)});
  ASSERT_EQ(sent_to<Records>(1).size(), 1U);
  const auto records = std::get<Records>(sent_to<Records>(1)[0].message.body).records;
  EXPECT_TRUE(std::ranges::count(records, NodeId{17}, &NodeRecord::id) == 1);
  EXPECT_LT(records.size(), 20U);
  for (const auto& received : records)
    EXPECT_EQ(NodeDigest::bucket(received.id) % 64, NodeDigest::bucket(17) % 64);
}

TEST_F(MembershipTest, SplitsRecordsIntoMessagesOfBoundedSize) {
  MembershipOptions options;
  options.records_bytes = 500;
  start_with(options);
  for (NodeId id = 1; id <= 100; ++id) receive(id);
  clear_effects();
  receive(50, Digest{.buckets = {0}});
  std::size_t records = 0;
  for (const auto& send : sent<Records>()) {
    EXPECT_LE(wire_size(send.message), 500U);
    records += std::get<Records>(send.message.body).records.size();
  }
  EXPECT_EQ(records, 100U);
}

TEST_F(MembershipTest, DeclaresAnEarlierNodeAtItsAddressDead) {
  NodeRecord old = record(5);
  old.address = record(self_id).address;
  receive(1, Records{{old, record(2)}});
  EXPECT_EQ(state(5), NodeState::dead);
  EXPECT_EQ(state(2), NodeState::alive);
}

// --- probes -------------------------------------------------------------------------------------

TEST_F(MembershipTest, ProbesEachNodeOnceARound) {
  for (NodeId id = 1; id <= 5; ++id) receive(id);
  const auto advance_and_answer = [&](Time duration) {
    for (; duration > 0ms; duration -= 10ms) {
      advance(10ms);
      for (NodeId id = 1; id <= 5; ++id) answer_as(id);
    }
  };
  advance_and_answer(5 * options_.probe_interval);
  for (NodeId id = 1; id <= 5; ++id) EXPECT_EQ(sent_to<Ping>(id).size(), 1U) << id;
  advance_and_answer(options_.probe_interval);
  EXPECT_EQ(membership_->counts().probes_failed, 0U);
  EXPECT_TRUE(sent<PingRequest>().empty());
}

TEST_F(MembershipTest, AsksOthersThenSuspectsThenDeclaresDead) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  clear_effects();
  advance(options_.probe_interval);
  ASSERT_EQ(sent<Ping>().size(), 1U);
  const NodeId target = std::get<Ping>(sent<Ping>()[0].message.body).to;
  advance(options_.probe_timeout);
  EXPECT_EQ(sent<PingRequest>().size(), 3U);
  EXPECT_TRUE(sent_to<PingRequest>(target).empty());
  const auto asked = std::get<PingRequest>(sent<PingRequest>()[0].message.body);
  EXPECT_EQ(asked.target, target);
  for (const NodeId helper : {1, 2})
    receive(helper == target ? 3 : helper, PingNack{asked.sequence});
  EXPECT_EQ(state(target), NodeState::alive);
  advance(options_.probe_interval);
  EXPECT_EQ(state(target), NodeState::suspect);
  EXPECT_EQ(membership_->health_score(), 0U) << "helpers answered, so this node is healthy";
  for (const NodeId other : {1, 2, 3, 4})
    if (other != target) {
      receive(other, Gossip{}, {{record(target, 0, NodeState::suspect), other}});
      answer_as(other);
    }
  EXPECT_EQ(changes().size(), 1U);
  // The answers of the other nodes keep the health score at 0.
  for (int i = 0; i < 60 && state(target) != NodeState::dead; ++i) {
    advance(20ms);
    for (const NodeId other : {1, 2, 3, 4})
      if (other != target) answer_as(other);
  }
  EXPECT_EQ(state(target), NodeState::dead);
  EXPECT_EQ(membership_->counts().deaths, 1U);
  EXPECT_EQ(changes().back().state, NodeState::dead);
}

TEST_F(MembershipTest, AcceptsAnAnswerThatAHelperForwards) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  advance(options_.probe_interval + options_.probe_timeout);
  ASSERT_FALSE(sent<PingRequest>().empty());
  const auto request = sent<PingRequest>()[0];
  const auto asked = std::get<PingRequest>(request.message.body);
  NodeId helper = 1;
  while (record(helper).address != request.address) ++helper;
  receive(helper, PingAck{asked.sequence});
  advance(options_.probe_interval - options_.probe_timeout);
  EXPECT_EQ(state(asked.target), NodeState::alive);
}

TEST_F(MembershipTest, IgnoresAnswersOfOthersAndToOtherProbes) {
  for (NodeId id = 1; id <= 2; ++id) receive(id);
  advance(options_.probe_interval);
  ASSERT_FALSE(sent<Ping>().empty());
  const auto ping = std::get<Ping>(sent<Ping>()[0].message.body);
  receive(77, PingAck{ping.sequence});
  receive(ping.to, PingAck{ping.sequence + 1});
  advance(options_.probe_interval);
  EXPECT_EQ(state(ping.to), NodeState::suspect);
}

TEST_F(MembershipTest, AnswersOnlyPingsToItsOwnId) {
  receive(1, Ping{self_id, 9});
  ASSERT_EQ(sent_to<PingAck>(1).size(), 1U);
  EXPECT_EQ(std::get<PingAck>(sent_to<PingAck>(1)[0].message.body).sequence, 9U);
  receive(1, Ping{self_id + 1, 10});
  EXPECT_EQ(sent_to<PingAck>(1).size(), 1U) << "the ping was for a former process at this address";
}

TEST_F(MembershipTest, ProbesForAnotherNodeAndSendsANackIfThereIsNoAnswer) {
  receive(1);
  receive(2);
  clear_effects();
  receive(1, PingRequest{2, 33});
  ASSERT_EQ(sent_to<Ping>(2).size(), 1U);
  const auto ping = std::get<Ping>(sent_to<Ping>(2)[0].message.body);
  advance(options_.nack_after);
  ASSERT_EQ(sent_to<PingNack>(1).size(), 1U);
  EXPECT_EQ(std::get<PingNack>(sent_to<PingNack>(1)[0].message.body).sequence, 33U);
  receive(2, PingAck{ping.sequence});
  ASSERT_EQ(sent_to<PingAck>(1).size(), 1U) << "a late answer is forwarded";
  EXPECT_EQ(std::get<PingAck>(sent_to<PingAck>(1)[0].message.body).sequence, 33U);
  receive(2, PingAck{ping.sequence});
  EXPECT_EQ(sent_to<PingAck>(1).size(), 1U);
}

TEST_F(MembershipTest, RefusesToProbeUnknownNodesAndTooManyAtOnce) {
  receive(1);
  receive(2);
  receive(1, PingRequest{99, 1});
  EXPECT_EQ(sent<PingNack>().size(), 1U);
  clear_effects();
  for (std::uint64_t i = 0; i < 5000; ++i) receive(1, PingRequest{2, i});
  EXPECT_EQ(sent_to<Ping>(2).size(), 1024U);
  EXPECT_EQ(sent<PingNack>().size(), 5000U - 1024U);
}

}  // namespace
}  // namespace starling::core
