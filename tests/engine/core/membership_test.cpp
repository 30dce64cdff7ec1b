/// Tests how one member joins and probes, message by message. membership_view_test.cpp tests what
/// it learns about others, tests/engine/sim/membership_test.cpp whole clusters.
#include <gtest/gtest.h>

#include <set>

#include "starling/engine/core/wire_size.hpp"
#include "tests/engine/core/one_member.hpp"

namespace starling::core {
namespace {

// --- joining ------------------------------------------------------------------------------------

TEST_F(MembershipTest, HasJoinedAtOnceWithoutSeedNodes) {
  EXPECT_TRUE(member_->joined());
  pass(5s);
  EXPECT_TRUE(sent<Ping>().empty());
  EXPECT_TRUE(sent<Digest>().empty());
}

TEST_F(MembershipTest, AsksEachSeedNodeInTurnUntilOneAnswers) {
  MembershipOptions options;
  options.seeds = {"host:1", "host:2", record(self_id).address};
  make(options);
  EXPECT_FALSE(member_->joined());
  pass(options_.join_again * 3);
  EXPECT_EQ(sent<Digest>().size(), 4U);
  EXPECT_EQ(sent_to<Digest>(1).size(), 2U);
  EXPECT_EQ(sent_to<Digest>(2).size(), 2U) << "and never its own address";
  EXPECT_FALSE(has_effect<HasJoined>());
  receive(2, Records{{record(3)}});
  receive(2, Digest{.buckets = {1}, .answer = true});
  EXPECT_TRUE(member_->joined());
  EXPECT_TRUE(has_effect<HasJoined>());
  EXPECT_EQ(state(3), NodeState::alive);
  forget();
  pass(options_.join_again * 4);
  for (const auto& send : sent<Digest>()) EXPECT_NE(send.address, "host:1");
}

TEST_F(MembershipTest, SendsAJoinerAllRecordsAndAsksForItsRecords) {
  for (NodeId id = 1; id <= 20; ++id) receive(id);
  forget();
  receive(50, Digest{.buckets = {0}});
  std::set<NodeId> told;
  for (const auto& send : sent_to<Records>(50))
    for (const auto& one : std::get<Records>(send.message.body).records) told.insert(one.id);
  EXPECT_EQ(told.size(), 21U) << "20 others and itself";
  ASSERT_EQ(sent_to<Digest>(50).size(), 1U);
  EXPECT_TRUE(std::get<Digest>(sent_to<Digest>(50)[0].message.body).answer);
}

TEST_F(MembershipTest, SendsOnlyTheBucketsThatDiffer) {
  for (NodeId id = 1; id <= 200; ++id) receive(id);
  NodeDigest digest;
  for (NodeId id = 1; id <= 200; ++id)
    digest.toggle(record(id, id == 17 ? 1 : 0));  // the other side knows a newer 17
  digest.toggle(record(self_id));
  forget();
  receive(1, Digest{.buckets = digest.folded(64)});
  ASSERT_EQ(sent_to<Records>(1).size(), 1U);
  const auto records = std::get<Records>(sent_to<Records>(1)[0].message.body).records;
  EXPECT_TRUE(std::ranges::count(records, NodeId{17}, &NodeRecord::id) == 1);
  EXPECT_LT(records.size(), 20U);
  for (const auto& one : records)
    EXPECT_EQ(NodeDigest::bucket(one.id) % 64, NodeDigest::bucket(17) % 64);
}

TEST_F(MembershipTest, SplitsRecordsIntoMessagesOfBoundedSize) {
  MembershipOptions options;
  options.records_bytes = 500;
  make(options);
  for (NodeId id = 1; id <= 100; ++id) receive(id);
  forget();
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

TEST_F(MembershipTest, ProbesEachMemberOnceARound) {
  for (NodeId id = 1; id <= 5; ++id) receive(id);
  const auto answered = [&](Time duration) {
    for (; duration > 0ms; duration -= 10ms) {
      pass(10ms);
      for (NodeId id = 1; id <= 5; ++id) answer_as(id);
    }
  };
  answered(5 * options_.probe_interval);
  for (NodeId id = 1; id <= 5; ++id) EXPECT_EQ(sent_to<Ping>(id).size(), 1U) << id;
  answered(options_.probe_interval);
  EXPECT_EQ(member_->counts().probes_failed, 0U);
  EXPECT_TRUE(sent<PingRequest>().empty());
}

TEST_F(MembershipTest, AsksOthersThenSuspectsThenDeclaresDead) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  forget();
  pass(options_.probe_interval);
  ASSERT_EQ(sent<Ping>().size(), 1U);
  const NodeId target = std::get<Ping>(sent<Ping>()[0].message.body).to;
  pass(options_.probe_timeout);
  EXPECT_EQ(sent<PingRequest>().size(), 3U);
  EXPECT_TRUE(sent_to<PingRequest>(target).empty());
  const auto asked = std::get<PingRequest>(sent<PingRequest>()[0].message.body);
  EXPECT_EQ(asked.target, target);
  for (const NodeId helper : {1, 2})
    receive(helper == target ? 3 : helper, PingNack{asked.sequence});
  EXPECT_EQ(state(target), NodeState::alive);
  pass(options_.probe_interval);
  EXPECT_EQ(state(target), NodeState::suspect);
  EXPECT_EQ(member_->health_score(), 0U) << "helpers answered: this member is healthy";
  for (const NodeId other : {1, 2, 3, 4})
    if (other != target) {
      receive(other, Gossip{}, {{record(target, 0, NodeState::suspect), other}});
      answer_as(other);
    }
  EXPECT_EQ(changes().size(), 1U);
  // Answers of the others keep its health at 0.
  for (int i = 0; i < 60 && state(target) != NodeState::dead; ++i) {
    pass(20ms);
    for (const NodeId other : {1, 2, 3, 4})
      if (other != target) answer_as(other);
  }
  EXPECT_EQ(state(target), NodeState::dead);
  EXPECT_EQ(member_->counts().deaths, 1U);
  EXPECT_EQ(changes().back().state, NodeState::dead);
}

TEST_F(MembershipTest, AcceptsAnAnswerThatAHelperForwards) {
  for (NodeId id = 1; id <= 4; ++id) receive(id);
  pass(options_.probe_interval + options_.probe_timeout);
  ASSERT_FALSE(sent<PingRequest>().empty());
  const auto request = sent<PingRequest>()[0];
  const auto asked = std::get<PingRequest>(request.message.body);
  NodeId helper = 1;
  while (record(helper).address != request.address) ++helper;
  receive(helper, PingAck{asked.sequence});
  pass(options_.probe_interval - options_.probe_timeout);
  EXPECT_EQ(state(asked.target), NodeState::alive);
}

TEST_F(MembershipTest, IgnoresAnswersOfOthersAndToOtherProbes) {
  for (NodeId id = 1; id <= 2; ++id) receive(id);
  pass(options_.probe_interval);
  ASSERT_FALSE(sent<Ping>().empty());
  const auto ping = std::get<Ping>(sent<Ping>()[0].message.body);
  receive(77, PingAck{ping.sequence});
  receive(ping.to, PingAck{ping.sequence + 1});
  pass(options_.probe_interval);
  EXPECT_EQ(state(ping.to), NodeState::suspect);
}

TEST_F(MembershipTest, AnswersOnlyPingsToItsOwnId) {
  receive(1, Ping{self_id, 9});
  ASSERT_EQ(sent_to<PingAck>(1).size(), 1U);
  EXPECT_EQ(std::get<PingAck>(sent_to<PingAck>(1)[0].message.body).sequence, 9U);
  receive(1, Ping{self_id + 1, 10});
  EXPECT_EQ(sent_to<PingAck>(1).size(), 1U) << "that was for a process that is gone";
}

TEST_F(MembershipTest, ProbesForAnotherMemberAndSendsANackWithoutAnswer) {
  receive(1);
  receive(2);
  forget();
  receive(1, PingRequest{2, 33});
  ASSERT_EQ(sent_to<Ping>(2).size(), 1U);
  const auto ping = std::get<Ping>(sent_to<Ping>(2)[0].message.body);
  pass(options_.nack_after);
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
  forget();
  for (std::uint64_t i = 0; i < 5000; ++i) receive(1, PingRequest{2, i});
  EXPECT_EQ(sent_to<Ping>(2).size(), 1024U);
  EXPECT_EQ(sent<PingNack>().size(), 5000U - 1024U);
}

}  // namespace
}  // namespace starling::core
