/// Faults that a cluster notices, and when, whatever happens to its nodes and their network: seeded
/// runs with the default options.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "starling/engine/core/membership/peer_sampler.hpp"
#include "starling/engine/sim/membership/cluster.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::NodeState;

using Nodes = std::vector<NodeId>;

/// One network of machines that stand together, and a bad one.
ClusterOptions near() { return {.link = {.latency = {laws::Exponential{500us}}}}; }
ClusterOptions bad() {
  return {.link = {.latency = {laws::Exponential{3ms}},
                   .loss = 0.1,
                   .duplication = 0.1,
                   .reordering = 0.1,
                   .delay = {laws::Exponential{20ms}}}};
}

/// `count` nodes that have found each other, some time ago.
class Found : public Cluster {
 public:
  Found(ClusterOptions options, std::size_t count, std::uint64_t seed)
      : Cluster(std::move(options), seed) {
    start_many(count);
    EXPECT_TRUE(run_until([&] { return agree(); }, 20s)) << "the cluster never came about";
    run(2s + Time{Random::stream(seed, 3).below(1'000'000'000)});
  }

  /// How many times anybody called a process dead since then.
  [[nodiscard]] std::size_t deaths_since(Time start) const {
    return static_cast<std::size_t>(std::ranges::count_if(noticed(), [&](const Noticed& one) {
      return one.at >= start && one.record.state == NodeState::dead;
    }));
  }
};

/// Runs `scenario(cluster)` for as many seeds.
template <class Scenario>
void each_seed(std::uint64_t seeds, const ClusterOptions& options, std::size_t count,
               Scenario scenario) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Found cluster{options, count, seed};
    if (testing::Test::HasFailure()) return;
    scenario(cluster);
  }
}

Nodes all_but(const Cluster& cluster, NodeId except) {
  Nodes nodes(cluster.size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::erase(nodes, except);
  return nodes;
}

// --- joining and leaving ------------------------------------------------------------------------

TEST(Membership, FindsAllThroughOneSeedNode) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster{near(), seed};
    cluster.start_many(50);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 2s)) << seed;
  }
}

TEST(Membership, FindsAllOverABadNetworkToo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster{bad(), seed};
    cluster.start_many(50);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 10s)) << seed;
  }
}

TEST(Membership, JoinsThroughAnyMemberAndNotOnlyTheFirstDoor) {
  each_seed(20, near(), 5, [](Found& cluster) {
    cluster.crash(1);
    const NodeId late = cluster.start({1, 3});  // one seed node is down
    EXPECT_TRUE(cluster.run_until([&] { return cluster.of(late).joined(); }, 2s));
    cluster.crash(0);
    const NodeId later = cluster.start({late});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
    EXPECT_TRUE(cluster.of(later).joined());
  });
}

TEST(Membership, WaitsForADoorThatOpensLater) {
  Cluster cluster{near(), 1};
  const NodeId seed = cluster.start();
  cluster.crash(seed);
  const NodeId early = cluster.start({seed});
  cluster.run(20s);
  EXPECT_FALSE(cluster.of(early).joined());
  cluster.restart(seed, {});
  EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 1s));
}

TEST(Membership, KnowsWhoLeavesAtOnceAndSuspectsItNever) {
  each_seed(20, near(), 20, [](Found& cluster) {
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

TEST(Membership, TellsAllOfNewFacts) {
  each_seed(5, near(), 20, [](Found& cluster) {
    cluster.offer(3, 17);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 500ms));
    core::PeerSampler sampler;
    sampler.set(cluster.of(0).self());
    for (const auto& noticed : cluster.noticed())
      if (noticed.by == 0) sampler.set(noticed.record);
    EXPECT_EQ(sampler.workers(), 19U + 17U);
  });
}

// --- crashes ------------------------------------------------------------------------------------

TEST(Membership, MissesWhoCrashed) {
  for (const std::size_t count : {3U, 5U, 50U})
    each_seed(20, near(), count, [&](Found& cluster) {
      const Nodes rest = all_but(cluster, 1);
      cluster.crash(1);
      EXPECT_TRUE(cluster.run_until([&] { return cluster.miss(rest, {1}); }, 2s));
      EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(rest); }, 4s));
    });
}

TEST(Membership, TakesARestartedProcessForAnotherMember) {
  each_seed(20, near(), 10, [](Found& cluster) {
    const core::NodeId old = cluster.of(4).self().id;
    cluster.crash(4);
    cluster.restart(4, {0, 1});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 1s))
        << "the old one is dead as soon as the new one is known";
    EXPECT_EQ(cluster.of(0).members().find(old)->record.state, NodeState::dead);
    cluster.run(20s);
    EXPECT_TRUE(cluster.agree());
  });
}

TEST(Membership, FormsAgainWhenAllButOneCrash) {
  each_seed(5, near(), 10, [](Found& cluster) {
    for (NodeId node = 1; node < 10; ++node) cluster.crash(node);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree({0}); }, 120s));
    for (NodeId node = 1; node < 10; ++node) cluster.restart(node, {0});
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

// --- cuts ---------------------------------------------------------------------------------------

TEST(Membership, NoticesACutWithinTwoSecondsAndAgreesFiveAfterIt) {
  each_seed(100, near(), 5, [](Found& cluster) {
    const Nodes a{0, 1, 2};
    const Nodes b{3, 4};
    cluster.network().part(a, b);
    const Time start = cluster.now();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.miss(a, b) && cluster.miss(b, a); }, 2s));
    cluster.run(start + 8s - cluster.now());
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

TEST(Membership, AgreesAfterALongCutOfMany) {
  each_seed(5, near(), 60, [](Found& cluster) {
    Nodes a(25);
    Nodes b(35);
    std::iota(a.begin(), a.end(), 0U);
    std::iota(b.begin(), b.end(), 25U);
    cluster.network().part(a, b);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(a) && cluster.agree(b); }, 120s));
    cluster.run(60s);
    const NodeId during = cluster.start({30});  // known to one side only, until it heals
    b.push_back(during);
    cluster.network().part(a, {{during}});
    cluster.run(5s);
    const Time healed = cluster.now();
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
    EXPECT_EQ(cluster.deaths_since(healed), 0U) << "each side calls the other's members alive";
  });
}

TEST(Membership, FindsBackThroughADoorAfterACutLongerThanTheDeadAreKept) {
  ClusterOptions options = near();
  options.membership.dead_for = 30s;
  each_seed(5, options, 6, [](Found& cluster) {
    cluster.network().part({{0, 1, 2}}, {{3, 4, 5}});
    cluster.run(120s);
    for (const NodeId by : {0, 1, 2})
      for (const NodeId of : {3, 4, 5}) EXPECT_EQ(cluster.state(by, of), std::nullopt);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 300s));
  });
}

TEST(Membership, OverlooksACutOfOneLinkInOneDirection) {
  each_seed(20, near(), 5, [](Found& cluster) {
    const Time start = cluster.now();
    cluster.network().cut(1, 3);
    cluster.run(30s);
    EXPECT_EQ(cluster.deaths_since(start), 0U) << "the others reach both";
    EXPECT_EQ(cluster.counts().suspicions, 0U);
    EXPECT_TRUE(cluster.agree());
  });
}

/// Node `lonely` receives nothing from the others where `deaf`; otherwise they receive nothing from
/// it.
void expect_apart(Found& cluster, NodeId lonely, bool deaf) {
  for (const NodeId other : all_but(cluster, lonely))
    deaf ? cluster.network().cut(other, lonely) : cluster.network().cut(lonely, other);
  const Nodes rest = all_but(cluster, lonely);
  const auto apart = [&] { return cluster.agree(rest) && cluster.agree({lonely}); };
  EXPECT_TRUE(cluster.run_until(apart, 120s));
  const Time start = cluster.now();
  cluster.run(30s);
  EXPECT_TRUE(apart()) << "and it stays so";
  EXPECT_EQ(cluster.deaths_since(start), 0U);
  cluster.network().heal();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
}

TEST(Membership, AgreesToDoWithoutWhoHearsNobody) {
  for (const std::size_t count : {2U, 3U, 8U})
    each_seed(10, near(), count, [](Found& cluster) { expect_apart(cluster, 1, true); });
}

TEST(Membership, AgreesToDoWithoutWhomNobodyHears) {
  for (const std::size_t count : {2U, 3U, 8U})
    each_seed(10, near(), count, [](Found& cluster) { expect_apart(cluster, 1, false); });
}

TEST(Membership, AgreesOnEachSideOfAOneWayCut) {
  each_seed(20, near(), 5, [](Found& cluster) {
    const Nodes a{0, 1, 2};
    const Nodes b{3, 4};
    for (const NodeId from : a)
      for (const NodeId to : b) cluster.network().cut(from, to);
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

// --- members that are slow ----------------------------------------------------------------------

TEST(Membership, TakesBackWhoWasFrozen) {
  for (const std::size_t count : {3U, 5U, 50U})
    each_seed(20, near(), count, [](Found& cluster) {
      cluster.freeze(1, 10s);
      cluster.run(10s - 1ns);
      EXPECT_TRUE(cluster.miss(all_but(cluster, 1), {1}));
      const Time back = cluster.now();
      EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
      cluster.run(30s);
      EXPECT_TRUE(cluster.agree());
      EXPECT_EQ(cluster.deaths_since(back), 0U) << "it blames nobody for its own absence";
    });
}

TEST(Membership, TakesBackWhoWasFrozenWhileItsMessagesWereLost) {
  each_seed(20, near(), 5, [](Found& cluster) {
    cluster.freeze(1, 10s);
    for (const NodeId other : all_but(cluster, 1)) {
      cluster.network().cut(other, 1);
      cluster.network().cut(1, other);
    }
    cluster.run(10s);
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

/// All run for 0.5 s and then stand still for 1.5 s on average, up to 3 s: a quarter of their
/// speed. Every death is a false one.
TEST(Membership, CallsAlmostNobodyDeadWhereAllAreSlow) {
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
    EXPECT_GT(total.suspicions, 100U) << "there was reason to call some dead";
  }
}

TEST(Membership, ASlowMemberHarmsNoOther) {
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

TEST(Membership, CallsNobodyDeadOverABadNetwork) {
  each_seed(10, bad(), 10, [](Found& cluster) {
    const Time start = cluster.now();
    cluster.run(60s);
    EXPECT_EQ(cluster.deaths_since(start), 0U);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s));
  });
}

// --- all of it ----------------------------------------------------------------------------------

TEST(Membership, CostsAMemberTheSameHoweverManyThereAre) {
  std::vector<double> each_second;
  for (const std::size_t count : {5U, 200U}) {
    Found cluster{near(), count, 1};
    cluster.run(10s);
    const auto before = cluster.messages();
    cluster.run(20s);
    each_second.push_back(static_cast<double>(cluster.messages() - before) /
                          (20.0 * static_cast<double>(count)));
  }
  EXPECT_NEAR(each_second[1] / each_second[0], 1, 0.05);
  EXPECT_LT(each_second[0], 15);
}

/// Whatever happened, when it is over those that run agree.
TEST(Membership, AgreesInTheEndWhateverHappened) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Found cluster{seed % 2 == 0 ? near() : bad(), 12, seed};
    Random random = Random::stream(seed, 9);
    const auto any = [&] { return static_cast<NodeId>(random.below(cluster.size())); };
    for (int fault = 0; fault < 25; ++fault) {
      const NodeId node = any();
      const bool running = cluster.runs(node) && !cluster.has_left(node) &&
                           cluster.of(node).self().state == NodeState::alive;
      switch (random.below(7)) {
        case 0:
          if (node != 0) cluster.crash(node);
          break;
        case 1:
          if (!cluster.runs(node)) cluster.restart(node, {0, any()});
          break;
        case 2:
          if (running) cluster.freeze(node, Time{random.below(8'000'000'000)});
          break;
        case 3:
          for (int i = 0; i < 20; ++i) cluster.network().cut(any(), any());
          break;
        case 4:
          cluster.network().heal();
          break;
        case 5:
          if (running && node != 0 && random.below(3) == 0) cluster.leave(node);
          break;
        default:
          cluster.start({0, any()});
      }
      cluster.run(Time{random.below(3'000'000'000)});
    }
    cluster.network().heal();
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 40s));
    cluster.run(30s);
    EXPECT_TRUE(cluster.run_until([&] { return cluster.agree(); }, 5s)) << "and still do";
  }
}

}  // namespace
}  // namespace starling::sim
