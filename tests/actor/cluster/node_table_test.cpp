#include "starling/actor/cluster/node_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// Returns the record of node 7.
core::NodeRecord node_in(core::NodeState state) {
  return {.id = 7, .address = "tcp://127.0.0.1:7", .name = "n7", .state = state};
}

constexpr auto forgotten_by_membership = [](wire::NodeId) { return false; };

TEST(NodeTable, TakesNodesThatAreAliveOrNotKnownYetForResponsive) {
  NodeTable nodes;
  EXPECT_TRUE(nodes.is_responsive(7)) << "the news of a new node may not have come yet";
  for (const auto state : {core::NodeState::alive, core::NodeState::suspect, core::NodeState::dead,
                           core::NodeState::left}) {
    nodes.update(node_in(state), 0s);
    EXPECT_EQ(nodes.is_responsive(7), state == core::NodeState::alive);
  }
}

TEST(NodeTable, KeepsADeadNodeWhileAJobHasAMemberThere) {
  NodeTable nodes;
  nodes.update(node_in(core::NodeState::alive), 0s);
  nodes.update(node_in(core::NodeState::dead), 1s);
  nodes.remove_dead(forgotten_by_membership, {7}, 11min);
  EXPECT_FALSE(nodes.is_responsive(7));
  EXPECT_EQ(nodes.is_believed_live(7, 11min), false);
  nodes.remove_dead(forgotten_by_membership, {8}, 12min);
  EXPECT_EQ(nodes.is_believed_live(7, 12min), std::nullopt);
}

TEST(NodeTable, BelievesADeathThatIsNotRefutedAtOnce) {
  NodeTable nodes;
  EXPECT_EQ(nodes.is_believed_live(7, 0s), std::nullopt);
  EXPECT_TRUE(nodes.update(node_in(core::NodeState::alive), 0s));
  EXPECT_FALSE(nodes.update(node_in(core::NodeState::suspect), 1s));
  EXPECT_EQ(nodes.is_believed_live(7, 1s), true);
  EXPECT_TRUE(nodes.is_address_in_use("tcp://127.0.0.1:7"));
  EXPECT_TRUE(nodes.update(node_in(core::NodeState::dead), 2s));
  EXPECT_FALSE(nodes.is_address_in_use("tcp://127.0.0.1:7"));
  nodes.remove_dead(forgotten_by_membership, {7}, 2s);
  EXPECT_EQ(nodes.is_believed_live(7, 2s), std::nullopt);
  EXPECT_EQ(nodes.is_believed_live(7, 2399ms), std::nullopt);
  EXPECT_EQ(nodes.is_believed_live(7, 2400ms), false);
  EXPECT_TRUE(nodes.update(node_in(core::NodeState::alive), 3s));
  EXPECT_EQ(nodes.is_believed_live(7, 3s), true) << "it has refuted its death";
  EXPECT_TRUE(nodes.update(node_in(core::NodeState::left), 4s));
  EXPECT_EQ(nodes.is_believed_live(7, 4s), false) << "it has said so itself";
}

TEST(NodeTable, KeepsDeadNodesThatMembershipKnows) {
  NodeTable nodes;
  nodes.update(node_in(core::NodeState::dead), 1s);
  nodes.remove_dead([](wire::NodeId id) { return id == 7; }, {}, 2s);
  EXPECT_FALSE(nodes.is_responsive(7));
  nodes.update(node_in(core::NodeState::alive), 3s);
  nodes.remove_dead(forgotten_by_membership, {}, 4s);
  EXPECT_EQ(nodes.is_believed_live(7, 4s), true) << "a live node is never removed";
}

TEST(NodeTable, KnowsThatANodeIsReplacedIfAnotherProcessHasItsAddress) {
  NodeTable nodes;
  EXPECT_FALSE(nodes.is_replaced(7, "tcp://127.0.0.1:7")) << "nothing is known of it";
  nodes.update(node_in(core::NodeState::alive), 0s);
  EXPECT_FALSE(nodes.is_replaced(7, "tcp://127.0.0.1:7")) << "it lives";
  nodes.update(node_in(core::NodeState::dead), 1s);
  EXPECT_FALSE(nodes.is_replaced(7, "tcp://127.0.0.1:1")) << "it may be cut off";
  EXPECT_TRUE(nodes.is_replaced(7, "tcp://127.0.0.1:7")) << "by this node";
  nodes.update({.id = 8, .address = "tcp://127.0.0.1:7", .name = "n7"}, 2s);
  EXPECT_TRUE(nodes.is_replaced(7, "tcp://127.0.0.1:1"));
}

TEST(NodeTable, ListsNodesInTheOrderInWhichTheyCameOrWent) {
  NodeTable nodes;
  const auto ids = [](const std::vector<core::NodeRecord>& records) {
    std::vector<core::NodeId> result;
    for (const core::NodeRecord& record : records) result.push_back(record.id);
    return result;
  };
  for (const core::NodeId id : {7, 9, 3})
    nodes.update({.id = id, .address = "tcp://127.0.0.1:7", .name = "n"}, 0s);
  nodes.update(
      {.id = 7, .address = "tcp://127.0.0.1:7", .name = "n", .state = core::NodeState::left}, 1s);
  EXPECT_EQ(ids(nodes.all()), (std::vector<core::NodeId>{9, 3, 7}));
  nodes.update({.id = 9,
                .address = "tcp://127.0.0.1:7",
                .name = "n",
                .workers = 2,
                .state = core::NodeState::suspect},
               2s);
  EXPECT_EQ(ids(nodes.all()), (std::vector<core::NodeId>{9, 3, 7})) << "a suspect is live";
  EXPECT_EQ(ids(nodes.live()), (std::vector<core::NodeId>{3, 9})) << "ascending by id";
}

}  // namespace
}  // namespace starling::actor
