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

TEST(NodeTable, KeepsDeadNodesThatMembershipKnows) {
  NodeTable nodes;
  nodes.update(node_in(core::NodeState::dead), 1s);
  nodes.remove_dead([](wire::NodeId id) { return id == 7; }, {}, 2s);
  EXPECT_FALSE(nodes.is_responsive(7));
  nodes.update(node_in(core::NodeState::alive), 3s);
  nodes.remove_dead(forgotten_by_membership, {}, 4s);
  EXPECT_EQ(nodes.is_believed_live(7, 4s), true) << "a live node is never removed";
}

}  // namespace
}  // namespace starling::actor
