/// Tests that a cluster copes with partitions and with slow nodes: seeded runs with the default
/// options.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/engine/sim/converged_cluster.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::NodeState;

// --- partitions ---------------------------------------------------------------------------------

TEST(Membership, NoticesAPartitionWithinTwoSecondsAndAgreesFiveSecondsAfterIt) {
  for_each_seed(100, good_network(), 5, [](ConvergedCluster& cluster) {
    const Nodes a{0, 1, 2};
    const Nodes b{3, 4};
    cluster.network().partition(a, b);
    const Time start = cluster.now();
    EXPECT_TRUE(cluster.run_until(
        [&] { return cluster.all_suspect(a, b) && cluster.all_suspect(b, a); }, 2s));
    cluster.run(start + 8s - cluster.now());
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

TEST(Membership, AgreesAfterALongPartitionOfManyNodes) {
  for_each_seed(5, good_network(), 60, [](ConvergedCluster& cluster) {
    Nodes a(25);
    Nodes b(35);
    std::iota(a.begin(), a.end(), 0U);
    std::iota(b.begin(), b.end(), 25U);
    cluster.network().partition(a, b);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(a) && cluster.agree(b); }, 120s));
    cluster.run(60s);
    const NodeId newcomer = cluster.start({30});  // only one side knows it until the network heals
    b.push_back(newcomer);
    cluster.network().partition(a, {{newcomer}});
    cluster.run(5s);
    const Time healed = cluster.now();
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
    EXPECT_EQ(cluster.deaths_since(healed), 0U)
        << "each side learns that the other's nodes are alive";
  });
}

TEST(Membership, RejoinsThroughASeedNodeAfterTheDeadWereForgotten) {
  ClusterOptions options = good_network();
  options.membership.forget_dead_after = 30s;
  for_each_seed(5, options, 6, [](ConvergedCluster& cluster) {
    cluster.network().partition({{0, 1, 2}}, {{3, 4, 5}});
    cluster.run(120s);
    for (const NodeId by : {0, 1, 2})
      for (const NodeId of : {3, 4, 5}) EXPECT_EQ(cluster.state(by, of), std::nullopt);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 300s));
  });
}

TEST(Membership, ToleratesOneBlockedLinkInOneDirection) {
  for_each_seed(20, good_network(), 5, [](ConvergedCluster& cluster) {
    const Time start = cluster.now();
    cluster.network().block(1, 3);
    cluster.run(30s);
    EXPECT_EQ(cluster.deaths_since(start), 0U) << "both nodes are probed through the others";
    EXPECT_EQ(cluster.counts().suspicions, 0U);
    EXPECT_TRUE(cluster.agree());
  });
}

enum class Direction { from_others, to_others };

/// Blocks the links of node `isolated` in one direction. Expects that this node and the others
/// declare each other dead, and that all agree again after the links have healed.
void expect_isolated(ConvergedCluster& cluster, NodeId isolated, Direction direction) {
  for (const NodeId other : all_but(cluster, isolated))
    direction == Direction::from_others ? cluster.network().block(other, isolated)
                                        : cluster.network().block(isolated, other);
  const Nodes rest = all_but(cluster, isolated);
  const auto are_separate = [&] { return cluster.agree(rest) && cluster.agree({isolated}); };
  EXPECT_TRUE(cluster.run_until(are_separate, 120s));
  const Time start = cluster.now();
  cluster.run(30s);
  EXPECT_TRUE(are_separate()) << "both sides keep excluding each other";
  EXPECT_EQ(cluster.deaths_since(start), 0U);
  cluster.network().heal();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
}

TEST(Membership, ExcludesANodeThatReceivesNothing) {
  for (const std::size_t count : {2U, 3U, 8U})
    for_each_seed(10, good_network(), count, [](ConvergedCluster& cluster) {
      expect_isolated(cluster, 1, Direction::from_others);
    });
}

TEST(Membership, ExcludesANodeFromWhichNobodyReceives) {
  for (const std::size_t count : {2U, 3U, 8U})
    for_each_seed(10, good_network(), count, [](ConvergedCluster& cluster) {
      expect_isolated(cluster, 1, Direction::to_others);
    });
}

TEST(Membership, AgreesOnEachSideOfAOneWayPartition) {
  for_each_seed(20, good_network(), 5, [](ConvergedCluster& cluster) {
    const Nodes a{0, 1, 2};
    const Nodes b{3, 4};
    for (const NodeId from : a)
      for (const NodeId to : b) cluster.network().block(from, to);
    const auto are_separate = [&] { return cluster.agree(a) && cluster.agree(b); };
    EXPECT_TRUE(cluster.run_until(are_separate, 60s));
    const Time start = cluster.now();
    cluster.run(30s);
    EXPECT_TRUE(are_separate());
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

// --- slow nodes ---------------------------------------------------------------------------------

TEST(Membership, AdmitsAFrozenNodeAgain) {
  for (const std::size_t count : {3U, 5U, 50U})
    for_each_seed(20, good_network(), count, [](ConvergedCluster& cluster) {
      cluster.freeze(1, 10s);
      cluster.run(10s - 1ns);
      EXPECT_TRUE(cluster.all_suspect(all_but(cluster, 1), {1}));
      const Time thawed_at = cluster.now();
      EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
      cluster.run(30s);
      EXPECT_TRUE(cluster.agree());
      EXPECT_EQ(cluster.deaths_since(thawed_at), 0U)
          << "a node that was frozen declares no other node dead";
    });
}

TEST(Membership, AdmitsAFrozenNodeAgainWhoseMessagesWereLost) {
  for_each_seed(20, good_network(), 5, [](ConvergedCluster& cluster) {
    cluster.freeze(1, 10s);
    for (const NodeId other : all_but(cluster, 1)) {
      cluster.network().block(other, 1);
      cluster.network().block(1, other);
    }
    cluster.run(10s);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

/// Each node alternately runs for 0.5 s and is frozen for 1.5 s, both on average, so it runs a
/// quarter of the time. No node crashes: every declared death is false.
TEST(Membership, DeclaresAlmostNobodyDeadIfAllAreSlow) {
  if (sanitized) GTEST_SKIP() << "counts in many runs";
  for (const std::size_t count : {5U, 40U}) {
    core::MembershipCounts total;
    for_each_seed(200 / count, good_network(), count, [&](ConvergedCluster& cluster) {
      const auto before = cluster.counts();
      for (NodeId node = 0; node < cluster.size(); ++node)
        cluster.slow(node, {laws::Exponential{500ms}}, {laws::Uniform{1500ms}});
      cluster.run(600s);
      total.probes += cluster.counts().probes - before.probes;
      total.deaths += cluster.counts().deaths - before.deaths;
      total.suspicions += cluster.counts().suspicions - before.suspicions;
    });
    EXPECT_GE(total.probes, 10'000U);
    EXPECT_LE(static_cast<double>(total.deaths), static_cast<double>(total.probes) / 1e4);
    EXPECT_GT(total.suspicions, 100U) << "the nodes were slow enough to be suspected";
  }
}

TEST(Membership, ASlowNodeCausesNoDeathOfAnotherNode) {
  for_each_seed(10, good_network(), 20, [](ConvergedCluster& cluster) {
    const Time start = cluster.now();
    cluster.slow(5, {laws::Exponential{500ms}}, {laws::Uniform{1500ms}});
    cluster.run(60s);
    for (const auto& noticed : cluster.noticed())
      if (noticed.at >= start && noticed.record.state == NodeState::dead) {
        EXPECT_EQ(noticed.record.name, "n5");
      }
  });
}

TEST(Membership, DeclaresNobodyDeadOverABadNetwork) {
  for_each_seed(10, bad_network(), 10, [](ConvergedCluster& cluster) {
    const Time start = cluster.now();
    cluster.run(60s);
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

}  // namespace
}  // namespace starling::sim
