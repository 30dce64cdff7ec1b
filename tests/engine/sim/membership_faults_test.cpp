/// Tests that a cluster copes with partitions and with slow nodes: seeded runs with the default
/// options.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include "tests/engine/sim/found_cluster.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::NodeState;

// --- partitions ---------------------------------------------------------------------------------

TEST(Membership, NoticesAPartitionWithinTwoSecondsAndAgreesFiveSecondsAfterIt) {
  each_seed(100, near(), 5, [](Found& cluster) {
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
  each_seed(5, near(), 60, [](Found& cluster) {
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
  ClusterOptions options = near();
  options.membership.dead_for = 30s;
  each_seed(5, options, 6, [](Found& cluster) {
    cluster.network().partition({{0, 1, 2}}, {{3, 4, 5}});
    cluster.run(120s);
    for (const NodeId by : {0, 1, 2})
      for (const NodeId of : {3, 4, 5}) EXPECT_EQ(cluster.state(by, of), std::nullopt);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 300s));
  });
}

TEST(Membership, ToleratesOneBlockedLinkInOneDirection) {
  each_seed(20, near(), 5, [](Found& cluster) {
    const Time start = cluster.now();
    cluster.network().block(1, 3);
    cluster.run(30s);
    EXPECT_EQ(cluster.deaths_since(start), 0U) << "the others reach both";
    EXPECT_EQ(cluster.counts().suspicions, 0U);
    EXPECT_TRUE(cluster.agree());
  });
}

enum class Direction { from_others, to_others };

/// Blocks the links of node `lonely` in one direction, and expects that the node and the others
/// exclude each other until the links heal.
void expect_apart(Found& cluster, NodeId lonely, Direction direction) {
  for (const NodeId other : all_but(cluster, lonely))
    direction == Direction::from_others ? cluster.network().block(other, lonely)
                                        : cluster.network().block(lonely, other);
  const Nodes rest = all_but(cluster, lonely);
  const auto apart = [&] { return cluster.agree(rest) && cluster.agree({lonely}); };
  EXPECT_TRUE(cluster.run_until(apart, 120s));
  const Time start = cluster.now();
  cluster.run(30s);
  EXPECT_TRUE(apart()) << "they stay apart";
  EXPECT_EQ(cluster.deaths_since(start), 0U);
  cluster.network().heal();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
}

TEST(Membership, ExcludesANodeThatReceivesNothing) {
  for (const std::size_t count : {2U, 3U, 8U})
    each_seed(10, near(), count,
              [](Found& cluster) { expect_apart(cluster, 1, Direction::from_others); });
}

TEST(Membership, ExcludesANodeThatNobodyReceivesFrom) {
  for (const std::size_t count : {2U, 3U, 8U})
    each_seed(10, near(), count,
              [](Found& cluster) { expect_apart(cluster, 1, Direction::to_others); });
}

TEST(Membership, AgreesOnEachSideOfAOneWayPartition) {
  each_seed(20, near(), 5, [](Found& cluster) {
    const Nodes a{0, 1, 2};
    const Nodes b{3, 4};
    for (const NodeId from : a)
      for (const NodeId to : b) cluster.network().block(from, to);
    const auto apart = [&] { return cluster.agree(a) && cluster.agree(b); };
    EXPECT_TRUE(cluster.run_until(apart, 60s));
    const Time start = cluster.now();
    cluster.run(30s);
    EXPECT_TRUE(apart());
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

// --- slow nodes ---------------------------------------------------------------------------------

TEST(Membership, AdmitsAFrozenNodeAgain) {
  for (const std::size_t count : {3U, 5U, 50U})
    each_seed(20, near(), count, [](Found& cluster) {
      cluster.freeze(1, 10s);
      cluster.run(10s - 1ns);
      EXPECT_TRUE(cluster.all_suspect(all_but(cluster, 1), {1}));
      const Time back = cluster.now();
      EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
      cluster.run(30s);
      EXPECT_TRUE(cluster.agree());
      EXPECT_EQ(cluster.deaths_since(back), 0U)
          << "it declares nobody dead because of its own absence";
    });
}

TEST(Membership, AdmitsAFrozenNodeAgainWhoseMessagesWereLost) {
  each_seed(20, near(), 5, [](Found& cluster) {
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

/// All nodes by turns run for 0.5 s and are frozen for 1.5 s on average, at most 3 s: they run a
/// quarter of the time. Every death is a false one.
TEST(Membership, DeclaresAlmostNobodyDeadIfAllAreSlow) {
  for (const std::size_t count : {5U, 40U}) {
    core::MembershipCounts total;
    each_seed(200 / count, near(), count, [&](Found& cluster) {
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

TEST(Membership, ASlowNodeCausesNoOthersDeath) {
  each_seed(10, near(), 20, [](Found& cluster) {
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
  each_seed(10, bad(), 10, [](Found& cluster) {
    const Time start = cluster.now();
    cluster.run(60s);
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

}  // namespace
}  // namespace starling::sim
