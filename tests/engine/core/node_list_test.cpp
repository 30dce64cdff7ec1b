/// Tests the list of the nodes that a node knows, the order in which it probes them, and the queue
/// of records to gossip.
#include "starling/engine/core/membership/node_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "starling/engine/core/membership/gossip_queue.hpp"

namespace starling::core {
namespace {

NodeRecord record_of(NodeId id, NodeState state = NodeState::alive, std::uint64_t incarnation = 0) {
  return {.id = id,
          .address = "a",
          .name = {},
          .workers = 1,
          .incarnation = incarnation,
          .state = state};
}

TEST(NodeList, VisitsEachNodeOnceARoundInANewOrder) {
  NodeList list{1};
  Random random{2};
  for (NodeId id = 1; id <= 50; ++id) list.insert(record_of(id));
  constexpr int rounds = 600;
  std::map<NodeId, int> last_turns;
  double products = 0;
  for (int round = 0; round < rounds; ++round) {
    std::map<NodeId, int> turns;
    for (int turn = 0; turn < 50; ++turn) turns[list.next(random)->record.id] = turn;
    ASSERT_EQ(turns.size(), 50U);
    for (const auto& [id, turn] : last_turns) products += (turn - 24.5) * (turns[id] - 24.5);
    last_turns = std::move(turns);
  }
  // The turns in two independent orders of n have a correlation of mean 0 and variance 1 / (n - 1).
  const double variance = (50 * 50 - 1) / 12.0;
  EXPECT_NEAR(products / (50 * variance * (rounds - 1)), 0, 5 / std::sqrt(49.0 * (rounds - 1)));
}

/// While nodes join and leave, next() returns live nodes only, and the counts and the digest match
/// the nodes.
TEST(NodeList, StaysConsistentWhileNodesJoinAndLeave) {
  NodeList list{3};
  Random random{4};
  std::map<NodeId, NodeRecord> expected;
  for (int i = 0; i < 20'000; ++i) {
    const NodeId id = random.below(60) + 1;
    const auto state = static_cast<NodeState>(random.below(4));
    if (NodeEntry* entry = list.find(id); entry == nullptr) {
      list.insert(record_of(id, state));
      expected[id] = record_of(id, state);
    } else if (random.below(4) == 0) {
      list.erase(id);
      expected.erase(id);
    } else {
      const auto next = record_of(id, state, random.below(3));
      list.update(*entry, next);
      expected[id] = next;
    }
    const NodeEntry* next_node = list.next(random);
    ASSERT_TRUE(next_node == nullptr || is_live(next_node->record.state));
    NodeDigest digest;
    std::size_t live = 0;
    std::size_t dead = 0;
    for (const auto& [unused, record] : expected) {
      digest.toggle(record);
      live += is_live(record.state) ? 1 : 0;
      dead += record.state == NodeState::dead ? 1 : 0;
    }
    ASSERT_EQ(list.size(), expected.size());
    ASSERT_EQ(list.live().size(), live);
    ASSERT_EQ(list.dead().size(), dead);
    ASSERT_EQ(list.digest().folded(8), digest.folded(8));
  }
  for (const NodeId id : list.live()) EXPECT_EQ(list.live()[list.find(id)->list_position], id);
  for (const NodeId id : list.dead()) EXPECT_EQ(list.dead()[list.find(id)->list_position], id);
}

TEST(NodeList, VisitsTheNodesThatStayWhileOthersJoin) {
  NodeList list{5};
  Random random{6};
  for (NodeId id = 1; id <= 20; ++id) list.insert(record_of(id));
  NodeId joiner = 1000;
  for (int round = 0; round < 100; ++round) {
    std::map<NodeId, int> turns;
    for (int i = 0; i < 60; ++i) {
      if (i % 10 == 0) {
        list.insert(record_of(++joiner));
        list.erase(joiner - 1);
      }
      ++turns[list.next(random)->record.id];
    }
    for (NodeId id = 1; id <= 20; ++id)
      ASSERT_GE(turns[id], 1) << "60 turns are two rounds and the turns of the joiners";
  }
}

TEST(NodeList, FindsTheNodesOfABucket) {
  NodeList list{7};
  for (NodeId id = 1; id <= 500; ++id) list.insert(record_of(id));
  std::set<NodeId> visited;
  for (std::size_t bucket = 0; bucket < 16; ++bucket)
    list.for_each_in_bucket(bucket, 16, [&](const NodeRecord& record) {
      EXPECT_EQ(NodeDigest::bucket(record.id) % 16, bucket);
      visited.insert(record.id);
    });
  EXPECT_EQ(visited.size(), 500U);
}

TEST(NodeList, DrawsDifferentNodesThatThePredicateAccepts) {
  Random random{8};
  for (const NodeId size : {1U, 3U, 10U, 200U}) {
    NodeList list{9};
    for (NodeId id = 1; id <= size; ++id) list.insert(record_of(id));
    std::map<NodeId, int> drawn;
    for (int i = 0; i < 2000; ++i) {
      const auto drawn_nodes =
          list.draw_live(random, 3, [](const NodeEntry& entry) { return entry.record.id != 2; });
      const std::set<const NodeEntry*> different{drawn_nodes.begin(), drawn_nodes.end()};
      EXPECT_EQ(different.size(), drawn_nodes.size());
      EXPECT_EQ(drawn_nodes.size(), std::min<std::size_t>(3, size >= 2 ? size - 1 : size));
      for (const auto* entry : drawn_nodes) ++drawn[entry->record.id];
    }
    EXPECT_FALSE(drawn.contains(2));
    EXPECT_EQ(drawn.size(), size >= 2 ? size - 1 : size);
    // Five standard deviations of how many of 2000 draws contain a node.
    const double share = std::min(1.0, 3.0 / static_cast<double>(drawn.size()));
    for (const auto& [id, count] : drawn)
      EXPECT_NEAR(count, 2000 * share, 5 * std::sqrt(2000 * share * (1 - share))) << id;
  }
}

TEST(NodeDigest, DependsOnNodesAndIncarnationsButNotOnSuspicionsOrDeadNodes) {
  const auto digest_of = [](const std::vector<NodeRecord>& records) {
    NodeDigest digest;
    for (const auto& record : records) digest.toggle(record);
    return digest.folded(1);
  };
  const auto digest = digest_of({record_of(1), record_of(2)});
  EXPECT_NE(digest_of({record_of(1)}), digest);
  EXPECT_NE(digest_of({record_of(1), record_of(2, NodeState::alive, 1)}), digest);
  EXPECT_EQ(digest_of({record_of(2, NodeState::suspect), record_of(1)}), digest);
  EXPECT_EQ(digest_of({record_of(1), record_of(2), record_of(3, NodeState::dead)}), digest);
}

TEST(GossipQueue, TakesTheLeastSentFirstAndAmongThemTheNewest) {
  GossipQueue queue;
  for (NodeId id = 1; id <= 4; ++id) queue.put(id);
  const auto take = [&](std::size_t most) {
    std::vector<NodeId> taken;
    queue.take(most, 2, [&](NodeId id) { return taken.push_back(id), true; });
    return taken;
  };
  EXPECT_EQ(take(2), (std::vector<NodeId>{4, 3}));
  EXPECT_EQ(take(3), (std::vector<NodeId>{2, 1, 4}));
  EXPECT_EQ(take(9), (std::vector<NodeId>{3, 2, 1})) << "4 was taken twice";
  EXPECT_TRUE(queue.empty());
  queue.put(1);
  queue.put(2);
  EXPECT_EQ(take(1), (std::vector<NodeId>{2}));
  queue.put(2);
  EXPECT_EQ(take(1), (std::vector<NodeId>{2})) << "node 2 was put again";
  queue.remove(2);
  EXPECT_EQ(take(9), (std::vector<NodeId>{1}));
}

}  // namespace
}  // namespace starling::core
