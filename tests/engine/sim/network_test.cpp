/// Tests that links delay, lose, duplicate and reorder packets as their options say.
#include "starling/engine/sim/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/barrier/statistics.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t packets = 20'000;

LinkOptions constant(Time latency) { return {.latency = {laws::Constant{latency}}}; }

/// Sends many packets and returns the transit times of all that arrive, in nanoseconds.
std::vector<double> transit_times(Network& network, NodeId from, NodeId to) {
  std::vector<double> all;
  for (std::uint64_t i = 0; i < packets; ++i)
    for (const Time at : network.send(0s, from, to, 100))
      all.push_back(static_cast<double>(at.count()));
  return all;
}

TEST(Network, DelaysByItsLatencyDistribution) {
  Network network{{.latency = {laws::Exponential{10ms}}}, 1};
  const auto all = transit_times(network, 0, 1);
  ASSERT_EQ(all.size(), packets);
  double sum = 0;
  for (const double transit_time : all) sum += transit_time;
  // The mean of n exponentials of mean m has a standard deviation of m / sqrt(n).
  const double error = sum / static_cast<double>(packets) - 10e6;
  EXPECT_LT(std::abs(error) / (10e6 / std::sqrt(static_cast<double>(packets))), 5);
}

TEST(Network, SendsPacketsOneAfterAnotherOverALimitedBandwidth) {
  LinkOptions options = constant(2ms);
  options.bytes_per_second = 1e6;
  Network network{options, 1};
  EXPECT_EQ(network.send(0ms, 0, 1, 1000).times[0], 3ms);
  EXPECT_EQ(network.send(0ms, 0, 1, 500).times[0], 3500us) << "it departs after the first packet";
  EXPECT_EQ(network.send(0ms, 1, 0, 500).times[0], 2500us)
      << "each direction has its own bandwidth";
  EXPECT_EQ(network.send(0ms, 0, 2, 500).times[0], 2500us) << "each pair has its own bandwidth";
  EXPECT_EQ(network.send(5ms, 0, 1, 1000).times[0], 8ms) << "the link was free again";
}

TEST(Network, LosesDuplicatesAndDelaysTheGivenSharesOfPackets) {
  LinkOptions options = constant(1ms);
  options.loss = 0.3;
  options.duplication = 0.2;
  options.reordering = 0.1;
  options.delay = {laws::Constant{5ms}};
  Network network{options, 1};
  const auto all = transit_times(network, 0, 1);
  const auto [sent, lost, duplicated] = network.counts();
  EXPECT_EQ(sent, packets);
  EXPECT_LT(std::abs(deviations(lost, packets, 0.3)), 5);
  EXPECT_LT(std::abs(deviations(duplicated, packets - lost, 0.2)), 5);
  EXPECT_EQ(all.size(), packets - lost + duplicated);
  const auto late = static_cast<std::uint64_t>(std::ranges::count(all, 6e6));
  EXPECT_EQ(all.size() - late, static_cast<std::size_t>(std::ranges::count(all, 1e6)));
  EXPECT_LT(std::abs(deviations(late, all.size(), 0.1)), 5);
}

TEST(Network, DeliversToItselfAtOnceOnAnyLink) {
  LinkOptions options = constant(1s);
  options.loss = 0.999;
  options.bytes_per_second = 1;
  Network network{options, 1};
  network.block(3, 3);
  for (int i = 0; i < 100; ++i) {
    const Arrivals arrivals = network.send(7ms, 3, 3, 1000);
    ASSERT_EQ(arrivals.count, 1U);
    EXPECT_EQ(arrivals.times[0], 7ms);
  }
  EXPECT_EQ(network.counts().sent, 0U);
}

TEST(Network, BlocksOneDirectionAlone) {
  Network network{constant(1ms), 1};
  network.block(0, 1);
  EXPECT_EQ(network.send(0ms, 0, 1, 1).count, 0U);
  EXPECT_EQ(network.send(0ms, 1, 0, 1).count, 1U);
  EXPECT_EQ(network.send(0ms, 0, 2, 1).count, 1U);
  network.heal(0, 1);
  EXPECT_EQ(network.send(0ms, 0, 1, 1).count, 1U);
}

TEST(Network, PartitionsTwoSidesUntilHealed) {
  Network network{constant(1ms), 1};
  const std::vector<NodeId> left{0, 1};
  const std::vector<NodeId> right{2, 3};
  network.partition(left, right);
  for (NodeId from = 0; from < 4; ++from)
    for (NodeId to = 0; to < 4; ++to)
      EXPECT_EQ(network.send(0ms, from, to, 1).count, from / 2 == to / 2 ? 1U : 0U);
  network.heal();
  EXPECT_EQ(network.send(0ms, 0, 3, 1).count, 1U);
}

TEST(Network, UsesTheOptionsOfASingleLink) {
  Network network{constant(1ms), 1};
  network.set(0, 1, constant(50ms));
  EXPECT_EQ(network.send(0ms, 0, 1, 1).times[0], 50ms);
  EXPECT_EQ(network.send(0ms, 1, 0, 1).times[0], 1ms);
}

/// A blocked link uses as many random numbers as an open one. A partition can then be removed from
/// a failing scenario without a change of the random numbers elsewhere.
TEST(Network, DrawsEquallyManyNumbersForBlockedLinks) {
  const LinkOptions options{.latency = {laws::Exponential{1ms}}, .loss = 0.5, .duplication = 0.5};
  Network whole{options, 1};
  Network partitioned{options, 1};
  partitioned.block(0, 1);
  for (int i = 0; i < 100; ++i) {
    (void)whole.send(0ms, 0, 1, 1);
    (void)partitioned.send(0ms, 0, 1, 1);
    EXPECT_EQ(whole.send(0ms, 1, 0, 1).times, partitioned.send(0ms, 1, 0, 1).times);
  }
}

TEST(Network, RefusesInvalidLinkOptions) {
  const auto refusal = [](const LinkOptions& options) {
    const auto result = check(options);
    return result ? "" : result.error().message;
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.latency = {}, .loss = 1}), "loss=1; valid: 0 to below 1");
  EXPECT_EQ(refusal({.latency = {}, .loss = NAN}), "loss=nan; valid: 0 to below 1");
  EXPECT_EQ(refusal({.latency = {}, .duplication = -0.5}), "duplication=-0.5; valid: 0 to 1");
  EXPECT_EQ(refusal({.latency = {}, .reordering = 2}), "reordering=2; valid: 0 to 1");
  EXPECT_EQ(refusal({.latency = {}, .bytes_per_second = INFINITY}),
            "bandwidth=inf; valid: bytes a second, 0 for no limit");
}

}  // namespace
}  // namespace starling::sim
