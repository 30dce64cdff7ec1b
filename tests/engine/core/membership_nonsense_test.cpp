/// Tests that messages that no correct member sends do no harm.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/core/one_member.hpp"

namespace starling::core {
namespace {

TEST_F(MembershipTest, IgnoresInvalidRecords) {
  std::vector<NodeRecord> nonsense{record(0), record(3), record(4), record(5), record(6)};
  nonsense[1].address.clear();
  nonsense[2].address = std::string(256, 'x');
  nonsense[3].name = std::string(256, 'x');
  nonsense[4].workers = options_.workers_max + 1;
  nonsense.push_back(record(7));
  nonsense.back().state = static_cast<NodeState>(9);
  for (const NodeRecord& one : nonsense) {
    receive({one, Ping{self_id, 1}});
    receive(1, Gossip{}, {{one, 1}});
    receive(1, Records{{one}});
  }
  EXPECT_EQ(member_->nodes().size(), 1U);
  EXPECT_TRUE(sent<PingAck>().empty());
  receive({record(8, 0, NodeState::dead), Ping{self_id, 1}});
  receive({record(self_id), Ping{self_id, 1}});
  EXPECT_TRUE(sent<PingAck>().empty())
      << "no live node sends its own record as dead, and no other node has this id";
}

TEST_F(MembershipTest, IgnoresIncarnationsTooFarAhead) {
  receive(1);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t huge : {most, most - 1, std::uint64_t{1} << 40U}) {
    receive(1, Gossip{}, {{record(self_id, huge, NodeState::dead), 1}});
    receive(1, Gossip{}, {{record(1, huge, NodeState::dead), 2}, {record(9, huge), 2}});
  }
  EXPECT_EQ(member_->self().incarnation, 0U);
  EXPECT_EQ(state(1), NodeState::alive);
  EXPECT_EQ(state(9), std::nullopt);
}

TEST_F(MembershipTest, KeepsTheHighestPossibleIncarnation) {
  MembershipOptions options;
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  options.self = record(self_id, most);
  member_.emplace(options, 1);
  member_->start({now_, random_, effects_});
  receive(1, Gossip{}, {{record(self_id, most, NodeState::dead), 1}});
  EXPECT_EQ(member_->self().incarnation, most);
}

TEST_F(MembershipTest, IgnoresDigestsOfWrongSizes) {
  for (const std::size_t count : {0U, 3U, 2048U})
    receive(1, Digest{.buckets = std::vector<std::uint64_t>(count)});
  EXPECT_TRUE(sent<Digest>().empty());
  EXPECT_TRUE(sent<Records>().empty());
}

TEST_F(MembershipTest, KnowsAtMostMembersMaxMembers) {
  MembershipOptions options;
  options.nodes_max = 10;
  make(options);
  for (NodeId id = 1; id <= 5; ++id) receive(id);
  receive(1, Gossip{}, {{record(5, 0, NodeState::dead), 1}});
  for (NodeId id = 6; id <= 2000; ++id) receive(id);
  EXPECT_EQ(member_->nodes().size(), 10U);
  EXPECT_EQ(state(5), std::nullopt) << "dead members are forgotten first";
  EXPECT_EQ(state(1), NodeState::alive);
}

/// Random messages cause no crash and no growth beyond the bounds, and it still answers at the end.
TEST_F(MembershipTest, WithstandsRandomMessages) {
  MembershipOptions options;
  options.nodes_max = 20;
  make(options);
  Random noise{5};
  const auto any_record = [&] {
    NodeRecord one = record(noise.below(8) == 0 ? self_id : noise.below(40) + 80, noise.below(4),
                            static_cast<NodeState>(noise.below(5)));
    if (noise.below(20) == 0) one.address.clear();
    if (noise.below(20) == 0) one.incarnation = noise();
    if (noise.below(10) == 0) one.address = record(self_id).address;
    return one;
  };
  const auto any_body = [&]() -> MembershipMessage::Body {
    switch (noise.below(7)) {
      case 0:
        return Ping{noise.below(40) + 80, noise.below(50)};
      case 1:
        return PingAck{noise.below(50)};
      case 2:
        return PingRequest{noise.below(40) + 80, noise.below(50)};
      case 3:
        return PingNack{noise.below(50)};
      case 4:
        return Gossip{};
      case 5: {
        Digest digest{.buckets = {}, .answer = noise.below(2) == 0};
        digest.buckets.resize(noise.below(9), noise());
        return digest;
      }
      default: {
        Records page;
        for (auto i = noise.below(5); i > 0; --i) page.records.push_back(any_record());
        return page;
      }
    }
  };
  for (int i = 0; i < 50'000; ++i) {
    MembershipMessage message{any_record(), any_body()};
    for (auto k = noise.below(4); k > 0; --k)
      message.updates.push_back({any_record(), noise.below(40) + 80});
    receive(message);
    if (i % 10 == 0) {
      pass(Time{noise.below(30'000'000)});
      forget();
    }
    ASSERT_LE(member_->nodes().size(), 20U);
    ASSERT_LE(member_->nodes().live().size() + member_->nodes().dead().size(), 20U);
  }
  EXPECT_EQ(member_->self().state, NodeState::alive);
  receive(1, Ping{self_id, 4242});
  EXPECT_EQ(std::get<PingAck>(sent<PingAck>().back().message.body).sequence, 4242U);
}

}  // namespace
}  // namespace starling::core
