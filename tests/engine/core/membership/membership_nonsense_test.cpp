/// Tests that a node stays correct if it receives messages that no correct node sends.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/core/membership/membership_fixture.hpp"

namespace starling::core {
namespace {

TEST_F(MembershipTest, IgnoresInvalidRecords) {
  std::vector<NodeRecord> invalid_records{record(0), record(3), record(4), record(5), record(6)};
  invalid_records[1].address.clear();
  invalid_records[2].address = std::string(256, 'x');
  invalid_records[3].name = std::string(256, 'x');
  invalid_records[4].workers = options_.workers_max + 1;
  invalid_records.push_back(record(7));
  invalid_records.back().state = static_cast<NodeState>(9);
  for (const NodeRecord& one : invalid_records) {
    receive({one, Ping{self_id, 1}});
    receive(1, Gossip{}, {{one, 1}});
    receive(1, Records{{one}});
  }
  EXPECT_EQ(membership_->nodes().size(), 1U);
  EXPECT_TRUE(sent<PingAck>().empty());
  receive({record(8, 0, NodeState::dead), Ping{self_id, 1}});
  receive({record(self_id), Ping{self_id, 1}});
  EXPECT_TRUE(sent<PingAck>().empty())
      << "no live node says that it is dead, and no other node has this node's id";
}

TEST_F(MembershipTest, IgnoresIncarnationsTooFarAhead) {
  receive(1);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t huge : {most, most - 1, std::uint64_t{1} << 40U}) {
    receive(1, Gossip{}, {{record(self_id, huge, NodeState::dead), 1}});
    receive(1, Gossip{}, {{record(1, huge, NodeState::dead), 2}, {record(9, huge), 2}});
  }
  EXPECT_EQ(membership_->self().incarnation, 0U);
  EXPECT_EQ(state(1), NodeState::alive);
  EXPECT_EQ(state(9), std::nullopt);
}

TEST_F(MembershipTest, KeepsTheHighestPossibleIncarnation) {
  MembershipOptions options;
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  options.self = record(self_id, most);
  membership_.emplace(options, 1);
  membership_->start({now_, random_, effects_});
  receive(1, Gossip{}, {{record(self_id, most, NodeState::dead), 1}});
  EXPECT_EQ(membership_->self().incarnation, most);
}

TEST_F(MembershipTest, IgnoresDigestsOfWrongSizes) {
  for (const std::size_t count : {0U, 3U, 2048U})
    receive(1, Digest{.buckets = std::vector<std::uint64_t>(count)});
  EXPECT_TRUE(sent<Digest>().empty());
  EXPECT_TRUE(sent<Records>().empty());
}

TEST_F(MembershipTest, KnowsAtMostNodesMaxNodes) {
  MembershipOptions options;
  options.nodes_max = 10;
  start_with(options);
  for (NodeId id = 1; id <= 5; ++id) receive(id);
  receive(1, Gossip{}, {{record(5, 0, NodeState::dead), 1}});
  for (NodeId id = 6; id <= 2000; ++id) receive(id);
  EXPECT_EQ(membership_->nodes().size(), 10U);
  EXPECT_EQ(state(5), std::nullopt) << "dead nodes are forgotten first";
  EXPECT_EQ(state(1), NodeState::alive);
}

/// Random messages cause no crash and no growth beyond the bounds, and the node still answers a
/// ping at the end.
TEST_F(MembershipTest, SurvivesRandomMessages) {
  MembershipOptions options;
  options.nodes_max = 20;
  start_with(options);
  Random random{5};
  const auto random_record = [&] {
    NodeRecord one = record(random.below(8) == 0 ? self_id : random.below(40) + 80, random.below(4),
                            static_cast<NodeState>(random.below(5)));
    if (random.below(20) == 0) one.address.clear();
    if (random.below(20) == 0) one.incarnation = random();
    if (random.below(10) == 0) one.address = record(self_id).address;
    return one;
  };
  const auto random_body = [&]() -> MembershipMessage::Body {
    switch (random.below(7)) {
      case 0:
        return Ping{random.below(40) + 80, random.below(50)};
      case 1:
        return PingAck{random.below(50)};
      case 2:
        return PingRequest{random.below(40) + 80, random.below(50)};
      case 3:
        return PingNack{random.below(50)};
      case 4:
        return Gossip{};
      case 5: {
        Digest digest{.buckets = {}, .answer = random.below(2) == 0};
        digest.buckets.resize(random.below(9), random());
        return digest;
      }
      default: {
        Records page;
        for (auto i = random.below(5); i > 0; --i) page.records.push_back(random_record());
        return page;
      }
    }
  };
  for (int i = 0; i < 50'000; ++i) {
    MembershipMessage message{random_record(), random_body()};
    for (auto k = random.below(4); k > 0; --k)
      message.updates.push_back({random_record(), random.below(40) + 80});
    receive(message);
    if (i % 10 == 0) {
      advance(Time{random.below(30'000'000)});
      clear_effects();
    }
    ASSERT_LE(membership_->nodes().size(), 20U);
    ASSERT_LE(membership_->nodes().live().size() + membership_->nodes().dead().size(), 20U);
  }
  EXPECT_EQ(membership_->self().state, NodeState::alive);
  receive(1, Ping{self_id, 4242});
  EXPECT_EQ(std::get<PingAck>(sent<PingAck>().back().message.body).sequence, 4242U);
}

}  // namespace
}  // namespace starling::core
