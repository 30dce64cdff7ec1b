/// Compares the probabilities that StepCounts updates incrementally with newly computed ones, and
/// the numbers of waiters that it lets pass with those of independent draws.
#include "starling/engine/sim/steps/step_counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "starling/barrier/sampling.hpp"
#include "tests/barrier/statistics.hpp"

namespace starling::sim {
namespace {

class PassProbabilities : public testing::TestWithParam<const char*> {};

/// Workers advance at random, at most 6 steps ahead of the slowest, and end at step 15.
TEST_P(PassProbabilities, MatchTheStepsOfAllWorkers) {
  const auto barrier = barrier::parse(GetParam()).value();
  constexpr std::size_t workers = 12;
  constexpr Step last = 15;
  const std::size_t sample_size = barrier::seen_workers(barrier, workers - 1);
  StepCounts counts{barrier, workers};
  std::vector<Step> steps(workers);
  Random random{1};
  while (std::ranges::min(steps) < last) {
    Step& step = steps[random.below(workers)];
    if (step == last || step >= std::ranges::min(steps) + 6) continue;
    counts.advance(++step);
    if (step == last) counts.finish(last);
    ASSERT_EQ(counts.running(),
              workers - static_cast<std::size_t>(std::ranges::count(steps, last)));
    if (counts.running() == 0) break;
    ASSERT_EQ(counts.min(), std::ranges::min(steps));
    ASSERT_EQ(counts.max(), std::ranges::max(steps));
    auto sorted = steps;
    std::ranges::sort(sorted);
    ASSERT_EQ(counts.median().value_or(last), sorted[workers / 2]);
    for (const Step own : steps) {
      if (own == last) continue;
      const Step floor = barrier::floor(barrier, own).value();
      const auto reached = std::ranges::count_if(steps, [&](Step s) { return s >= floor; });
      const auto on_pace = static_cast<std::uint64_t>(reached) - 1;
      ASSERT_DOUBLE_EQ(counts.group(own).pass,
                       barrier::pass_probability(on_pace, workers - 1, sample_size));
    }
  }
  EXPECT_EQ(counts.running(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Barriers, PassProbabilities,
                         testing::Values("bsp", "ssp:s=2", "pbsp:beta=3", "pssp:s=2,beta=3",
                                         "pbsp:beta=11", "pssp:s=4,beta=1"));

/// Nine of 10 workers have finished step 1, draw 2 others, and wait for the one at step 0.
class Waiters : public testing::Test {
 protected:
  void SetUp() override {
    for (MemberId worker = 0; worker < 9; ++worker) counts.advance(1);
    for (MemberId worker = 0; worker < 9; ++worker) counts.add_waiter(1, worker);
  }
  StepCounts counts{barrier::parse("pbsp:beta=2").value(), 10};
  Random random{2};
};

/// Each worker passes with probability 8 * 7 / (9 * 8) = 7/9, independently of the others. Workers
/// that have passed are made to wait again.
TEST_F(Waiters, PassIndependentlyWithTheirProbability) {
  constexpr std::uint64_t rounds = 50'000;
  std::vector<std::uint64_t> times(9);
  std::vector<std::uint64_t> at_once(10);
  double remaining_hazard = random.exponential(1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<MemberId> passed;
    counts.let_pass(remaining_hazard, random, [&](MemberId worker) { passed.push_back(worker); });
    ++at_once[passed.size()];
    for (const MemberId worker : passed) {
      ++times[worker];
      counts.add_waiter(1, worker);
    }
  }
  for (const auto count : times) EXPECT_LT(std::abs(deviations(count, rounds, 7.0 / 9)), 5);
  double choose = 1;  // C(9, n)
  for (std::uint64_t n = 0; n <= 9; ++n) {
    const auto x = static_cast<double>(n);
    const double binomial = choose * std::pow(7.0 / 9, x) * std::pow(2.0 / 9, 9 - x);
    EXPECT_LT(std::abs(deviations(at_once[n], rounds, binomial)), 5) << n << " at once";
    choose *= (9 - x) / (x + 1);
  }
}

TEST_F(Waiters, AllPassOnceNobodyIsBehind) {
  counts.remove_waiter(1, 4);
  counts.advance(1);
  double remaining_hazard = 1e300;
  std::vector<MemberId> passed;
  counts.let_pass(remaining_hazard, random, [&](MemberId worker) { passed.push_back(worker); });
  std::ranges::sort(passed);
  EXPECT_EQ(passed, (std::vector<MemberId>{0, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(remaining_hazard, 1e300);
}

TEST(StepCounts, KeepsWaitersWithoutAChance) {
  StepCounts strict{barrier::parse("bsp").value(), 10};
  for (MemberId worker = 0; worker < 9; ++worker) {
    strict.advance(1);
    strict.add_waiter(1, worker);
  }
  double remaining_hazard = 1e-300;
  Random random{1};
  strict.let_pass(remaining_hazard, random, [](MemberId) { FAIL(); });
  EXPECT_EQ(remaining_hazard, 1e-300);
}

}  // namespace
}  // namespace starling::sim
