#include "starling/barrier/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "tests/barrier/statistics.hpp"

namespace starling::barrier {
namespace {

using Drawn = std::vector<std::uint32_t>;

/// Tests draw(), which draws `count` of the numbers below `population`. The parameters of a test
/// are `population` and `count`.
class Draw : public testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {};

TEST_P(Draw, TakesEachNumberAtMostOnce) {
  const auto [population, count] = GetParam();
  Random random{1};
  Drawn drawn;
  for (int i = 0; i < 200; ++i) {
    draw(population, count, random, drawn);
    EXPECT_EQ(drawn.size(), count);
    const std::set<std::uint32_t> different{drawn.begin(), drawn.end()};
    ASSERT_EQ(different.size(), count);
    if (count > 0) {
      ASSERT_LT(*different.rbegin(), population);
    }
  }
}

TEST_P(Draw, TakesEachNumberEquallyOften) {
  const auto [population, count] = GetParam();
  if (count == 0 || population == 1) return;  // there is nothing random
  Random random{2};
  std::vector<std::uint64_t> times_drawn(population);
  Drawn drawn;
  for (std::uint32_t i = 0; i < 400 * population / count + 1; ++i) {
    draw(population, count, random, drawn);
    for (const auto number : drawn) ++times_drawn[number];
  }
  // One draw takes no number twice, so the chi-square is only (1 - count / population) times that
  // of independent draws. A lower bound on it would therefore fail.
  EXPECT_LT(uniformity(times_drawn), 5);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Draw,
                         testing::Values(std::pair{0U, 0U}, std::pair{1U, 0U}, std::pair{1U, 1U},
                                         std::pair{10U, 1U}, std::pair{10U, 9U},
                                         std::pair{10U, 10U}, std::pair{99U, 31U},
                                         std::pair{99U, 32U}, std::pair{99U, 33U},
                                         std::pair{99U, 98U}, std::pair{1000U, 64U}));

/// Checks that draws of `count` numbers below `population` take every subset equally often.
void expect_every_subset(std::uint32_t population, std::uint32_t count) {
  Random random{3};
  // How often each subset was drawn; the key has one bit for each number of the subset.
  std::map<std::uint32_t, std::uint64_t> times_drawn;
  Drawn drawn;
  for (int i = 0; i < 100000; ++i) {
    draw(population, count, random, drawn);
    std::uint32_t subset = 0;
    for (const auto number : drawn) subset |= 1U << number;
    ++times_drawn[subset];
  }
  std::vector<std::uint64_t> counts;
  for (std::uint32_t subset = 0; subset < 1U << population; ++subset)
    if (static_cast<std::uint32_t>(std::popcount(subset)) == count)
      counts.push_back(times_drawn[subset]);
  EXPECT_LT(std::abs(uniformity(counts)), 5);
}

TEST(DrawFew, TakesEverySubsetEquallyOften) {
  for (const std::uint32_t count : {1U, 2U, 3U, 4U, 6U}) expect_every_subset(7, count);
}

/// The first laggard of a draw decides it, so no number may come first more often than others.
TEST(DrawFew, TakesEveryOrderEquallyOften) {
  Random random{6};
  std::map<Drawn, std::uint64_t> times_drawn;
  Drawn drawn;
  for (int i = 0; i < 60000; ++i) {
    draw(5, 3, random, drawn);
    ++times_drawn[drawn];
  }
  std::vector<std::uint64_t> counts;
  for (const auto& [order, count] : times_drawn) counts.push_back(count);
  ASSERT_EQ(counts.size(), 5U * 4 * 3);
  EXPECT_LT(std::abs(uniformity(counts)), 5);
}

/// draw() uses another method if `count` is above 32. This test counts the subsets of two numbers
/// that it leaves out.
TEST(DrawMany, LeavesEverySubsetOutEquallyOften) {
  Random random{4};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> left_out;
  Drawn drawn;
  for (int i = 0; i < 200000; ++i) {
    draw(35, 33, random, drawn);
    std::vector<bool> is_drawn(35);
    for (const auto number : drawn) is_drawn[number] = true;
    const auto first = std::ranges::find(is_drawn, false);
    const auto second = std::find(first + 1, is_drawn.end(), false);
    ++left_out[{first - is_drawn.begin(), second - is_drawn.begin()}];
  }
  std::vector<std::uint64_t> counts;
  for (std::uint32_t i = 0; i < 35; ++i)
    for (std::uint32_t j = i + 1; j < 35; ++j) counts.push_back(left_out[{i, j}]);
  EXPECT_LT(std::abs(uniformity(counts)), 5);
}

TEST(Draw, RepeatsWithTheSameSeed) {
  for (const std::uint32_t count : {5U, 40U}) {
    Random one{7};
    Random two{7};
    Drawn a;
    Drawn b;
    draw(100, count, one, a);
    draw(100, count, two, b);
    EXPECT_EQ(a, b);
  }
}

/// Compares with a count of all subsets of `others` workers, of which the first `on_pace` are not
/// laggards.
TEST(PassProbability, IsTheShareOfSubsetsWithoutALaggard) {
  for (std::uint32_t others = 0; others <= 9; ++others)
    for (std::uint32_t on_pace = 0; on_pace <= others; ++on_pace)
      for (std::uint32_t beta = 0; beta <= others; ++beta) {
        double subsets = 0;
        double passing = 0;
        for (std::uint32_t subset = 0; subset < 1U << others; ++subset) {
          if (static_cast<std::uint32_t>(std::popcount(subset)) != beta) continue;
          ++subsets;
          passing += subset >> on_pace == 0 ? 1 : 0;
        }
        EXPECT_NEAR(pass_probability(on_pace, others, beta), passing / subsets, 1e-12)
            << on_pace << " of " << others << ", beta " << beta;
      }
}

TEST(PassProbability, EqualsKnownValues) {
  EXPECT_EQ(pass_probability(5, 9, 0), 1);
  EXPECT_EQ(pass_probability(9, 9, 9), 1);
  EXPECT_EQ(pass_probability(8, 9, 9), 0);
  EXPECT_DOUBLE_EQ(pass_probability(90, 99, 2), 90.0 * 89 / (99 * 98));
}

/// A barrier pssp:s=staleness,beta=beta, at which `on_pace` of the `others` workers are not
/// laggards.
struct SampledSspCase {
  Step staleness;
  std::uint32_t beta;
  std::uint32_t on_pace;
  std::uint32_t others;
};

class SampledSsp : public testing::TestWithParam<SampledSspCase> {};

TEST_P(SampledSsp, PassesWithTheHypergeometricProbability) {
  const auto [staleness, beta, on_pace, others] = GetParam();
  const Barrier barrier = sampled(Ssp{staleness}, beta);
  constexpr Step own = 20;
  constexpr int checks = 200000;
  Random random{5};
  std::uint64_t passes = 0;
  Drawn drawn;
  std::vector<Step> seen;
  for (int i = 0; i < checks; ++i) {
    draw(others, beta, random, drawn);
    seen.clear();
    for (const auto worker : drawn) seen.push_back(own - staleness - (worker < on_pace ? 0 : 1));
    passes += admits(barrier, own, seen) ? 1 : 0;
  }
  EXPECT_LT(std::abs(deviations(passes, checks, pass_probability(on_pace, others, beta))), 5);
}

INSTANTIATE_TEST_SUITE_P(Populations, SampledSsp,
                         testing::Values(SampledSspCase{0, 2, 5, 9}, SampledSspCase{4, 1, 5, 9},
                                         SampledSspCase{4, 10, 90, 99}, SampledSspCase{4, 5, 4, 99},
                                         SampledSspCase{19, 33, 97, 99}));

}  // namespace
}  // namespace starling::barrier
