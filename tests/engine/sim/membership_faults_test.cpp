/// A cluster copes with cuts in its network and with slow members: seeded runs with the default
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

}  // namespace
}  // namespace starling::sim
