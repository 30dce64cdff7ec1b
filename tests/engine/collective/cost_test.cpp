/// Compares the costs of schedules with the published formulas.
#include "starling/engine/exchange/collective/cost.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "starling/engine/exchange/collective/algorithms/choice.hpp"
#include "tests/engine/collective/schedules.hpp"
#include "tests/sanitized.hpp"

namespace starling::collective {
namespace {

constexpr double bytes = 1e8;
/// 50 us and 10 Gbit/s.
const Network network{.latency_s = 50e-6, .bytes_per_second = 1.25e9};

Cost cost_of(const Algorithm& algorithm, std::size_t members,
             Operation operation = Operation::all_reduce, Rank root = 0) {
  return cost(make(algorithm, members, operation, root), bytes, network).value();
}

// Patarasuk and Yuan 2009: 2(n-1) rounds, 2(n-1)/n of the vector per port, and no algorithm with
// one port needs fewer bytes.
TEST(Costs, OfARing) {
  for (std::size_t n = 1; n <= (sanitized ? 9 : 33); ++n) {
    const auto members = static_cast<double>(n);
    const Cost ring = cost_of(Ring{}, n);
    EXPECT_EQ(ring.rounds, 2 * (n - 1));
    EXPECT_NEAR(ring.port_bytes, 2 * (members - 1) / members * bytes, 1e-6 * bytes);
    EXPECT_NEAR(ring.unpipelined_seconds,
                2 * (members - 1) * (network.latency_s + bytes / members / 1.25e9), 1e-12);
    for (const Algorithm& algorithm : algorithms_for(n)) {
      if (std::holds_alternative<BCube>(algorithm)) continue;  // has several ports
      EXPECT_GE(cost_of(algorithm, n).port_bytes, ring.port_bytes * (1 - 1e-12))
          << print(algorithm);
    }
  }
}

// Thakur et al. 2005: 2 log2 n rounds and as many bytes as a ring; 2 more rounds if n is no power
// of two, and the whole vector twice more.
TEST(Costs, OfRecursiveHalving) {
  for (std::size_t n = 1; n <= 33; ++n) {
    const std::size_t m = std::bit_floor(n);
    const auto log = static_cast<std::size_t>(std::countr_zero(m));
    const Cost halving = cost_of(Halving{}, n);
    EXPECT_EQ(halving.rounds, 2 * log + (m < n ? 2 : 0));
    const double exchanged = 2 * (1 - 1 / static_cast<double>(m)) * bytes;
    EXPECT_NEAR(halving.port_bytes, exchanged + (m < n ? bytes : 0), 1e-6 * bytes) << n;
  }
}

// Thakur et al. 2005: log2 n rounds, each with the whole vector; 2 more if n is no power of two.
TEST(Costs, OfRecursiveDoubling) {
  for (std::size_t n = 1; n <= 33; ++n) {
    const std::size_t m = std::bit_floor(n);
    const auto log = static_cast<std::size_t>(std::countr_zero(m));
    const Cost doubling = cost_of(Doubling{}, n);
    EXPECT_EQ(doubling.rounds, log + (m < n ? 2 : 0));
    const double vectors = static_cast<double>(log) + (m < n ? 1 : 0);
    EXPECT_NEAR(doubling.port_bytes, vectors * bytes, 1e-6 * bytes) << n;
  }
}

TEST(Costs, OfABinomialTree) {
  for (std::size_t n = 2; n <= 33; ++n) {
    const auto log = static_cast<std::size_t>(std::bit_width(n - 1));
    const Cost tree = cost_of(BinomialTree{}, n, Operation::all_reduce, static_cast<Rank>(n / 3));
    EXPECT_EQ(tree.rounds, 2 * log);
    EXPECT_NEAR(tree.unpipelined_seconds,
                2 * static_cast<double>(log) * (network.latency_s + bytes / 1.25e9), 1e-9);
  }
}

// PCL-DNN: everyone exchanges each part with its owner, and no bytes are wasted.
TEST(Costs, OfPartReduceAndPartBroadcast) {
  const Cost parts = cost_of(Parts{}, 8);
  EXPECT_EQ(parts.rounds, 2U);
  EXPECT_EQ(parts.messages, 2U * 8 * 7);
  EXPECT_NEAR(parts.port_bytes, 2 * 7.0 / 8 * bytes, 1);
}

// Sanders, Speck and Träff 2009: pipelined, two trees broadcast with the full bandwidth, a single
// binary tree with half of it.
TEST(Costs, OfTwoTreesReachFullBandwidth) {
  const Network fast{.latency_s = 1e-9, .bytes_per_second = 1e9};
  for (const std::size_t n : {7, 8, 16, 31, 32}) {
    const Cost two = cost(make(DoubleTree{}, n, Operation::all_reduce), bytes, fast).value();
    // Both reduce and broadcast send the whole vector over the busiest port.
    EXPECT_LT(two.seconds, 1.06 * 2 * bytes / 1e9) << n;
    EXPECT_GT(two.slices, 16U);
    Tree tree{std::vector<Rank>(n), 1};
    for (std::size_t i = 0; i < n; ++i)
      tree.parents[i] = static_cast<Rank>(DoubleTree::parent(i, n));
    const Cost one = cost(with_broadcast(reduce_over({tree})), bytes, fast).value();
    EXPECT_GT(one.seconds, 2.9 * bytes / 1e9) << n;
  }
}

TEST(DoubleTrees, HaveLeavesInOneTreeThatAreInnerInTheOther) {
  for (std::size_t n = 2; n <= 40; ++n) {
    std::vector<int> inner(n, 0);
    std::vector<std::size_t> children(2 * n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t up = DoubleTree::parent(i, n);
      if (up == i) continue;
      ++children[up];
      ++children[n + DoubleTree::member_in_second_tree(up, n)];
    }
    std::size_t inner_in_both = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_LE(children[i], 2U);
      inner_in_both += children[i] > 0 && children[n + i] > 0 ? 1 : 0;
    }
    EXPECT_LE(inner_in_both, 1U) << n;
  }
}

// BML, section 4: on BCube(b, k) each port carries 2(N-1)/(kN) of the vector in each direction, 1/k
// of what a parameter server with a shard at each of N members needs on a fat tree.
TEST(Costs, OfBCubeAreAKthOfTheShardedServers) {
  for (const auto& [base, k] : {std::pair{2, 2}, {4, 2}, {2, 3}, {3, 3}, {2, 4}}) {
    const auto n = static_cast<std::size_t>(std::lround(std::pow(base, k)));
    const auto ports = static_cast<std::size_t>(k);
    const Cost cube = cost_of(BCube{ports}, n);
    const Cost servers = cost_of(Parts{}, n);
    EXPECT_EQ(cube.rounds, 2 * ports);
    EXPECT_NEAR(cube.port_bytes, servers.port_bytes / k, 1e-6);
    // Each port is as fast as that of the server: k times as fast for long vectors.
    const Network no_latency{.latency_s = 0, .bytes_per_second = 1.25e9};
    const auto seconds = [&](const Algorithm& algorithm, const Network& by) {
      return cost(make(algorithm, n), bytes, by).value().unpipelined_seconds;
    };
    EXPECT_NEAR(seconds(BCube{ports}, no_latency), seconds(Parts{}, no_latency) / k, 1e-9);
    // The ports together are as fast as that of the server: nothing is gained but messages a port.
    const Network shared{.latency_s = 0, .bytes_per_second = 1.25e9 / k};
    EXPECT_NEAR(seconds(BCube{ports}, shared), seconds(Parts{}, no_latency), 1e-9);
    const Network no_bytes{.latency_s = 1e-6, .bytes_per_second = 1e30};
    EXPECT_NEAR(seconds(BCube{ports}, no_bytes), 2e-6 * k * (base - 1), 1e-12);
    EXPECT_NEAR(seconds(Parts{}, no_bytes), 2e-6 * static_cast<double>(n - 1), 1e-12);
  }
}

TEST(Costs, OfGroupsHaveTheRoundsOfBothLevels) {
  const Cost groups = cost_of(Groups{4}, 16);
  EXPECT_EQ(groups.rounds, 2U * (2 + 3));
  EXPECT_EQ(cost_of(Groups{16}, 16).rounds, cost_of(BinomialTree{}, 16).rounds);
  EXPECT_EQ(cost_of(Groups{1}, 16).rounds, cost_of(Ring{}, 16).rounds);
}

// The model of pipelining computes the same as the pipelined schedule, whose chunks are slices.
TEST(Costs, OfSlicesAreThoseOfThePipelinedSchedule) {
  // The messages of different slices stay apart, which is seen without latency only.
  const Network no_latency{.latency_s = 0, .bytes_per_second = 1e9};
  const auto unpipelined = [&](const Schedule& schedule) {
    return cost(schedule, bytes, no_latency).value().unpipelined_seconds;
  };
  for (const Algorithm& algorithm : algorithms_for(8)) {
    if (std::holds_alternative<PackedTrees>(algorithm)) continue;
    const Schedule schedule = make(algorithm, 8);
    const Cost best = cost(schedule, bytes, no_latency).value();
    EXPECT_NEAR(best.seconds, unpipelined(pipelined(schedule, best.slices)), 1e-9 * best.seconds)
        << print(algorithm);
    for (const std::size_t slices : {2, 8})
      EXPECT_LE(best.seconds, unpipelined(pipelined(schedule, slices)) * (1 + 1e-9))
          << print(algorithm);
  }
}

TEST(Costs, RefuseAMoveThatNoLinkCarries) {
  Network links = network;
  links.topology = std::make_shared<Topology>(topology("0 1\n1 2\n"));
  const auto ring = cost(make(Ring{}, 3), bytes, links);
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().message,
            "round 1: 2 -> 0: the topology has no link between these members");
}

TEST(Choice, TakesFewRoundsForShortVectorsAndFewBytesForLongOnes) {
  const auto best = [&](Operation operation, std::size_t members, double size) {
    const Request request{.operation = operation, .members = members, .bytes = size};
    const auto plans = make_plans(request, network).value();
    for (const Plan& plan : plans)
      EXPECT_LE(plans.front().cost.seconds, plan.cost.seconds * (1 + 1e-9));
    return print(plans.front().algorithm);
  };
  EXPECT_EQ(best(Operation::broadcast, 12, 100), "tree");
  EXPECT_EQ(best(Operation::all_reduce, 12, 100), "doubling");
  EXPECT_EQ(best(Operation::all_reduce, 12, 1e9), "ring");
  EXPECT_EQ(best(Operation::all_reduce, 16, 1e9), "halving");
  EXPECT_EQ(best(Operation::all_reduce, 1, 1e9), "ring");
}

TEST(Choice, IsOfPlansThatRunTheOperation) {
  for (const Operation operation : operations()) {
    const Request request{.operation = operation, .members = 6, .root = 2, .bytes = 1e6};
    const auto plans = make_plans(request, network);
    ASSERT_TRUE(plans) << plans.error().message;
    for (const Plan& plan : *plans) EXPECT_EQ(plan.schedule, make(plan.algorithm, 6, operation, 2));
  }
}

/// Sums of the same terms in another order differ in their last digits.
TEST(Costs, WithoutLatencyAreThoseOfOneSlice) {
  const Network network{.latency_s = 0, .bytes_per_second = 1.25e9};
  const auto schedule = make_schedule(Ring{}, Operation::all_reduce, 8, 0).value();
  EXPECT_EQ(cost(schedule, 1e8, network).value().slices, 1U);
}

}  // namespace
}  // namespace starling::collective
