#include "starling/models/batch_sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "starling/base/random.hpp"

namespace starling::models {
namespace {

using Sizes = std::vector<std::uint64_t>;

std::uint64_t sum_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

/// Shares that vary by many orders of magnitude, some of them 0.
std::vector<double> random_shares(Random& random) {
  std::vector<double> shares(1 + random.below(20));
  for (double& share : shares)
    share = random.below(8) == 0 ? 0 : std::exp(static_cast<double>(random.below(20)));
  return shares;
}

TEST(BatchSizes, AreThoseOfTheExampleOfDbs) {
  const std::vector<WorkDone> done{{512, 1}, {512, 1}, {512, 1}, {512, 2}};
  EXPECT_EQ(divide_batch(512, next_shares(done)), (Sizes{147, 146, 146, 73}));
}

TEST(BatchSizes, AddUpToTheTotalAndAreNeverZero) {
  Random random{1};
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::vector<double> shares = random_shares(random);
    const std::uint64_t total = 1 + random.below(2'000);
    const Sizes sizes = divide_batch(total, shares);
    ASSERT_EQ(sizes.size(), shares.size());
    ASSERT_GE(std::ranges::min(sizes), 1U);
    ASSERT_EQ(sum_of(sizes), std::max<std::uint64_t>(total, shares.size()));
  }
}

TEST(BatchSizes, AreWithinOneOfTheExactPartIfThisIsAtLeastOne) {
  Random random{2};
  for (int trial = 0; trial < 20'000; ++trial) {
    std::vector<double> shares(1 + random.below(20));
    for (double& share : shares) share = 1 + static_cast<double>(random.below(9));
    const std::uint64_t total = 9 * 20 + random.below(5'000);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const Sizes sizes = divide_batch(total, shares);
    for (std::size_t w = 0; w < shares.size(); ++w)
      ASSERT_LT(
          std::abs(static_cast<double>(sizes[w]) - static_cast<double>(total) * shares[w] / sum),
          1 + 1e-9);
  }
}

TEST(BatchSizes, GiveALargerShareNoSmallerBatch) {
  Random random{3};
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::vector<double> shares = random_shares(random);
    const Sizes sizes = divide_batch(1 + random.below(2'000), shares);
    for (std::size_t a = 0; a < shares.size(); ++a)
      for (std::size_t b = 0; b < shares.size(); ++b) {
        // A worker whose share is 0 gets 1 sample nevertheless.
        const bool is_larger = shares[a] > shares[b];
        ASSERT_TRUE(!is_larger || sizes[a] + (shares[b] == 0 ? 1 : 0) >= sizes[b]);
      }
  }
}

TEST(BatchSizes, OfEqualSharesDifferByAtMostOne) {
  EXPECT_EQ(divide_batch(512, std::uint64_t{4}), (Sizes{128, 128, 128, 128}));
  EXPECT_EQ(divide_batch(10, std::uint64_t{4}), (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(divide_batch(2, std::uint64_t{3}), (Sizes{1, 1, 1})) << "more workers than samples";
  EXPECT_EQ(divide_batch(10, std::vector<double>{0, 0}), (Sizes{5, 5}));
  EXPECT_TRUE(divide_batch(10, std::uint64_t{0}).empty()) << "all workers have ended";
}

TEST(BatchSizes, SharesFollowTheSpeeds) {
  const std::vector<WorkDone> done{{10, 1}, {40, 2}, {5, 0.5}};
  const auto shares = next_shares(done);
  EXPECT_NEAR(shares[0], 0.25, 1e-12);
  EXPECT_NEAR(shares[1], 0.5, 1e-12);
  EXPECT_NEAR(shares[2], 0.25, 1e-12);
}

TEST(BatchSizes, TakeTheMeanSpeedForAWorkerOfWhichNothingIsKnown) {
  const auto shares = next_shares(std::vector<WorkDone>{{10, 1}, {30, 1}, {}});
  EXPECT_NEAR(shares[2], 20.0 / 60, 1e-12);
  EXPECT_EQ(next_shares(std::vector<WorkDone>{{}, {}}), (std::vector<double>{0.5, 0.5}));
}

/// If the time of a batch is a fixed part and one for each sample, repeating the rule makes the
/// times equal.
TEST(BatchSizes, ConvergeToEqualTimes) {
  const std::vector<double> per_sample{1, 1, 1, 2, 5};
  Sizes sizes = divide_batch(1'000, std::uint64_t{5});
  std::vector<double> times;
  for (int round = 0; round < 12; ++round) {
    std::vector<WorkDone> done;
    times.clear();
    for (std::size_t w = 0; w < sizes.size(); ++w) {
      times.push_back(40 + per_sample[w] * static_cast<double>(sizes[w]));
      done.push_back({sizes[w], times[w]});
    }
    sizes = divide_batch(1'000, next_shares(done));
  }
  EXPECT_LT(std::ranges::max(times) / std::ranges::min(times), 1.03);
}

}  // namespace
}  // namespace starling::models
