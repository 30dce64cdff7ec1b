/// Tests how soon a cluster notices that nodes join, leave, crash and restart: seeded runs with the
/// default options. membership_faults_test.cpp tests partitions and slow nodes.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/engine/sim/converged_cluster.hpp"
#include "tests/sanitized.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::NodeState;

// --- joining and leaving ------------------------------------------------------------------------

TEST(Membership, FindsAllThroughOneSeedNode) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster{good_network(), seed};
    cluster.start_many(50);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 2s)) << seed;
  }
}

TEST(Membership, FindsAllOverABadNetworkToo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster{bad_network(), seed};
    cluster.start_many(50);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 10s)) << seed;
  }
}

TEST(Membership, JoinsThroughAnyNodeNotOnlyTheFirstSeed) {
  for_each_seed(20, good_network(), 5, [](ConvergedCluster& cluster) {
    cluster.crash(1);
    const NodeId late = cluster.start({1, 3});  // one seed node is down
    EXPECT_TRUE(cluster.run_until([&] { return cluster.process(late).joined(); }, 2s));
    cluster.crash(0);
    const NodeId later = cluster.start({late});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
    EXPECT_TRUE(cluster.process(later).joined());
  });
}

TEST(Membership, WaitsForASeedNodeThatStartsLater) {
  Cluster cluster{good_network(), 1};
  const NodeId seed = cluster.start();
  cluster.crash(seed);
  const NodeId early = cluster.start({seed});
  cluster.run(20s);
  EXPECT_FALSE(cluster.process(early).joined());
  cluster.restart(seed, {});
  EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 1s));
}

/// Pings that were on their way arrive after the node has left; its answers are no copies of the
/// news that it counts.
TEST(Membership, LetsANodeLeaveInTimeOverSlowLinks) {
  ClusterOptions options;
  options.link.latency = {laws::Exponential{20ms}};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Cluster cluster{options, 1000 + seed};
    cluster.start_many(8);
    cluster.run(3s + seed * 7ms);
    cluster.leave(7);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.has_left(7); }, 5s)) << "seed " << seed;
  }
}

TEST(Membership, LearnsOfALeaverAtOnceAndNeverSuspectsIt) {
  for_each_seed(20, good_network(), 20, [](ConvergedCluster& cluster) {
    const Time start = cluster.now();
    cluster.leave(7);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(all_but(cluster, 7)); }, 500ms));
    EXPECT_TRUE(cluster.run_until([&] { return cluster.has_left(7); }, 1s));
    cluster.crash(7);
    cluster.run(10s);
    for (const NodeId by : all_but(cluster, 7)) EXPECT_EQ(cluster.state(by, 7), NodeState::left);
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    EXPECT_EQ(cluster.counts().suspicions, 0U);
  });
}

TEST(Membership, TellsAllOfANewNumberOfWorkers) {
  for_each_seed(5, good_network(), 20, [](ConvergedCluster& cluster) {
    cluster.offer(3, 17);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 500ms));
    Nodes noticed_by;
    for (const auto& [at, by, record] : cluster.noticed())
      if (record.id == cluster.process(3).self().id && record.workers == 17)
        noticed_by.push_back(by);
    std::ranges::sort(noticed_by);
    EXPECT_EQ(noticed_by, all_but(cluster, 3));
  });
}

// --- crashes ------------------------------------------------------------------------------------

TEST(Membership, DeclaresACrashedNodeDead) {
  for (const std::size_t count : {3U, 5U, 50U})
    for_each_seed(20, good_network(), count, [&](ConvergedCluster& cluster) {
      const Nodes rest = all_but(cluster, 1);
      cluster.crash(1);
      EXPECT_TRUE(cluster.run_until([&] { return cluster.all_suspect(rest, {1}); }, 2s));
      EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(rest); }, 4s));
    });
}

TEST(Membership, TreatsARestartedProcessAsAnotherNode) {
  for_each_seed(20, good_network(), 10, [](ConvergedCluster& cluster) {
    const core::NodeId old = cluster.process(4).self().id;
    cluster.crash(4);
    cluster.restart(4, {0, 1});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 1s))
        << "the old node counts as dead as soon as the new one is known";
    EXPECT_EQ(cluster.process(0).nodes().find(old)->record.state, NodeState::dead);
    cluster.run(20s);
    EXPECT_TRUE(cluster.agree());
  });
}

TEST(Membership, FormsAgainWhenAllButOneCrash) {
  for_each_seed(5, good_network(), 10, [](ConvergedCluster& cluster) {
    for (NodeId node = 1; node < 10; ++node) cluster.crash(node);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree({0}); }, 120s));
    for (NodeId node = 1; node < 10; ++node) cluster.restart(node, {0});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

// --- messages and random faults -----------------------------------------------------------------

TEST(Membership, SendsAsManyMessagesPerNodeInClustersOfAnySize) {
  std::vector<double> messages_per_node_and_s;
  for (const std::size_t count : {5U, 200U}) {
    ConvergedCluster cluster{good_network(), count, 1};
    cluster.run(10s);
    const auto before = cluster.messages();
    cluster.run(20s);
    messages_per_node_and_s.push_back(static_cast<double>(cluster.messages() - before) /
                                      (20.0 * static_cast<double>(count)));
  }
  EXPECT_NEAR(messages_per_node_and_s[1] / messages_per_node_and_s[0], 1, 0.05);
  EXPECT_LT(messages_per_node_and_s[0], 15);
}

TEST(Membership, AgreesWhenRandomFaultsHaveEnded) {
  for (std::uint64_t seed = 1; seed <= seeds_to_run(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ConvergedCluster cluster{seed % 2 == 0 ? good_network() : bad_network(), 12, seed};
    Random random = Random::stream(seed, 9);
    const auto any_node = [&] { return static_cast<NodeId>(random.below(cluster.size())); };
    for (int fault = 0; fault < 25; ++fault) {
      const NodeId node = any_node();
      const bool running = cluster.runs(node) && !cluster.has_left(node) &&
                           cluster.process(node).self().state == NodeState::alive;
      switch (random.below(7)) {
        case 0:
          if (node != 0) cluster.crash(node);
          break;
        case 1:
          if (!cluster.runs(node)) cluster.restart(node, {0, any_node()});
          break;
        case 2:
          if (running) cluster.freeze(node, Time{random.below(8'000'000'000)});
          break;
        case 3:
          for (int i = 0; i < 20; ++i) cluster.network().block(any_node(), any_node());
          break;
        case 4:
          cluster.network().heal();
          break;
        case 5:
          if (running && node != 0 && random.below(3) == 0) cluster.leave(node);
          break;
        default:
          cluster.start({0, any_node()});
      }
      cluster.run(Time{random.below(3'000'000'000)});
    }
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 40s));
    cluster.run(30s);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s)) << "they agree later too";
  }
}

}  // namespace
}  // namespace starling::sim
