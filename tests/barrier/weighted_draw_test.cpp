/// Tests draws with weights against their exact probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/sampling.hpp"
#include "tests/barrier/statistics.hpp"
#include "tests/barrier/successive_draws.hpp"

namespace starling::barrier {
namespace {

using Drawn = std::vector<std::uint32_t>;
constexpr std::uint64_t draw_count = 100'000;

/// Draws of `count` of the numbers below `population`.
struct WeightedCase {
  std::uint32_t population;
  std::uint32_t count;
  std::vector<Weighted> weights;
};

class WeightedDraw : public testing::TestWithParam<WeightedCase> {
 protected:
  [[nodiscard]] static std::vector<double> all_weights() {
    std::vector<double> all(GetParam().population, 1);
    for (const auto& [number, weight] : GetParam().weights) all[number] = weight;
    return all;
  }
  [[nodiscard]] static std::vector<double> exact() {
    return set_probabilities(all_weights(), static_cast<int>(GetParam().count));
  }
};

std::uint32_t set_of(const Drawn& drawn) {
  std::uint32_t set = 0;
  for (const std::uint32_t number : drawn) set |= 1U << number;
  return set;
}

/// Expects that `draw` returns each set with its exact probability.
template <class DrawSet>
void expect_exact_sets(const std::vector<double>& exact, DrawSet draw) {
  std::vector<std::uint64_t> times_drawn(exact.size());
  for (std::uint64_t i = 0; i < draw_count; ++i) ++times_drawn[draw()];
  std::vector<std::uint64_t> counts;
  std::vector<double> expected;
  for (std::uint32_t set = 0; set < exact.size(); ++set) {
    if (exact[set] == 0) {
      EXPECT_EQ(times_drawn[set], 0U) << set;
      continue;
    }
    EXPECT_LT(std::abs(deviations(times_drawn[set], draw_count, exact[set])), 5) << set;
    counts.push_back(times_drawn[set]);
    expected.push_back(exact[set] * static_cast<double>(draw_count));
  }
  if (counts.size() > 1) {
    EXPECT_LT(std::abs(agreement(counts, expected)), 5);
  }
}

TEST_P(WeightedDraw, TakesEachSetWithItsExactProbability) {
  const auto& [population, count, weights] = GetParam();
  ASSERT_TRUE(check_weights(population, weights));
  Random random{1};
  Drawn drawn;
  expect_exact_sets(exact(), [&, n = population, k = count, &w = weights] {
    draw_weighted(n, k, w, random, drawn);
    EXPECT_EQ(drawn.size(), k);
    return set_of(drawn);
  });
}

/// The keys of Efraimidis and Spirakis have the same distribution as successive draws.
TEST_P(WeightedDraw, EqualsTheLargestExponentialKeys) {
  const std::vector<double> weights = all_weights();
  Random random{2};
  std::vector<std::pair<double, std::uint32_t>> keys(weights.size());
  expect_exact_sets(exact(), [&] {
    for (std::uint32_t i = 0; i < weights.size(); ++i)
      keys[i] = {random.exponential(1 / weights[i]), i};
    std::ranges::sort(keys);
    Drawn drawn;
    for (std::uint32_t i = 0; i < GetParam().count; ++i) drawn.push_back(keys[i].second);
    return set_of(drawn);
  });
}

TEST_P(WeightedDraw, TakesEachNumberWithItsInclusionProbability) {
  const auto& [population, count, weights] = GetParam();
  const std::vector<double> sets = exact();
  std::vector<std::uint64_t> times_drawn(population);
  Random random{3};
  Drawn drawn;
  for (std::uint64_t i = 0; i < draw_count; ++i) {
    draw_weighted(population, count, weights, random, drawn);
    for (const std::uint32_t number : drawn) ++times_drawn[number];
  }
  for (std::uint32_t number = 0; number < population; ++number) {
    const double expected = std::min(1.0, inclusion_probability(sets, number));
    if (expected > 1 - 1e-12) {
      EXPECT_EQ(times_drawn[number], draw_count);
    } else {
      EXPECT_LT(std::abs(deviations(times_drawn[number], draw_count, expected)), 5) << number;
    }
  }
}

TEST_P(WeightedDraw, PassesWithTheExactProbability) {
  const auto& [population, count, weights] = GetParam();
  constexpr Step own = 20;
  const Barrier barrier = sampled(Ssp{4}, count, Weighting::speed);
  const std::vector<double> sets = exact();
  Random random{4};
  Drawn drawn;
  std::vector<Step> seen;
  for (std::uint32_t laggards = 0; laggards <= population; ++laggards) {
    const std::uint32_t on_pace = ((1U << population) - 1) & ~((1U << laggards) - 1);
    std::uint64_t passes = 0;
    constexpr std::uint64_t checks = 20'000;
    for (std::uint64_t i = 0; i < checks; ++i) {
      draw_weighted(population, count, weights, random, drawn);
      seen.clear();
      for (const std::uint32_t number : drawn)
        seen.push_back(number < laggards ? own - 5 : own - 4);
      passes += admits(barrier, own, seen) ? 1 : 0;
    }
    const double expected = std::min(1.0, probability_within(sets, on_pace));
    if (expected > 1 - 1e-12) {
      EXPECT_EQ(passes, checks);
    } else {
      EXPECT_LT(std::abs(deviations(passes, checks, expected)), 5) << laggards;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Populations, WeightedDraw,
    testing::Values(WeightedCase{1, 1, {{0, 0.25}}}, WeightedCase{2, 1, {{1, 3}}},
                    WeightedCase{5, 1, {{0, 0.0625}, {4, 4}}}, WeightedCase{6, 2, {{2, 0.5}}},
                    WeightedCase{6, 3, {{0, 0.1}, {1, 0.2}, {5, 8}}},
                    WeightedCase{7, 2, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}},
                    WeightedCase{7, 5, {{1, 0.3}, {3, 2.5}}},
                    WeightedCase{4, 4, {{0, 9}, {3, 0.01}}}));

TEST(WeightedDraw, WithoutWeightsEqualsAUniformDraw) {
  for (const std::uint32_t count : {0U, 3U, 40U}) {
    Random one{7};
    Random other{7};
    Drawn uniform;
    Drawn weighted;
    draw(100, count, one, uniform);
    draw_weighted(100, count, {}, other, weighted);
    EXPECT_EQ(uniform, weighted);
  }
}

TEST(WeightedDraw, RepeatsWithTheSameSeedAndTakesNoNumberTwice) {
  std::vector<Weighted> weights;
  for (std::uint32_t number = 0; number < 5000; number += 10)
    weights.push_back({number, 0.5 + number % 7});
  Random one{8};
  Random other{8};
  Drawn a;
  Drawn b;
  for (int i = 0; i < 200; ++i) {
    draw_weighted(10'000, 64, weights, one, a);
    draw_weighted(10'000, 64, weights, other, b);
    ASSERT_EQ(a, b);
    const std::set<std::uint32_t> different{a.begin(), a.end()};
    ASSERT_EQ(different.size(), 64U);
    ASSERT_LT(*different.rbegin(), 10'000U);
  }
}

/// The extreme valid weights neither hang nor leave numbers out of a draw of all.
TEST(WeightedDraw, TakesAllNumbersWhateverTheirWeights) {
  const std::vector<Weighted> weights{{0, weight_min}, {1, weight_max}, {3, weight_min}};
  Random random{9};
  Drawn drawn;
  for (int i = 0; i < 1000; ++i) {
    draw_weighted(4, 4, weights, random, drawn);
    std::ranges::sort(drawn);
    ASSERT_EQ(drawn, (Drawn{0, 1, 2, 3}));
  }
}

TEST(Weights, AreRefusedWithTheNumberAndTheValidOnes) {
  const auto refusal = [](const std::vector<Weighted>& weights) {
    const auto valid = check_weights(5, weights);
    return valid ? "accepted" : valid.error().message;
  };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({{0, 0.5}, {4, 2}}), "accepted");
  EXPECT_EQ(refusal({{0, 0.5}, {5, 2}}),
            "weight 2 of number 5, at position 1: there is no such number; valid: below 5");
  EXPECT_EQ(refusal({{3, 0.5}, {1, 2}}),
            "weight 2 of number 1, at position 1: comes after number 3; valid: numbers that "
            "ascend, each once");
  EXPECT_EQ(refusal({{3, 0.5}, {3, 2}}),
            "weight 2 of number 3, at position 1: comes after number 3; valid: numbers that "
            "ascend, each once");
  const std::string bounds = ": valid: a number from 1e-06 to 1000000";
  EXPECT_EQ(refusal({{2, -1}}), "weight -1 of number 2, at position 0" + bounds);
  EXPECT_EQ(refusal({{2, std::numeric_limits<double>::quiet_NaN()}}),
            "weight nan of number 2, at position 0" + bounds);
  EXPECT_EQ(refusal({{2, std::numeric_limits<double>::infinity()}}),
            "weight inf of number 2, at position 0" + bounds);
  EXPECT_EQ(refusal({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}),
            "weight 0 of number 0, at position 0" + bounds);
}

}  // namespace
}  // namespace starling::barrier
