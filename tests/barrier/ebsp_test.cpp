#include "starling/barrier/rules/ebsp.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/random.hpp"

namespace starling::barrier {
namespace {

using namespace std::chrono_literals;
using Durations = std::vector<std::chrono::nanoseconds>;
using Steps = std::vector<Step>;

TEST(Ebsp, EndsTheStepsOfAllAsCloseTogetherAsPossible) {
  EXPECT_EQ(Ebsp::meeting(Durations{10ms, 10ms, 10ms, 20ms}, 15), (Steps{2, 2, 2, 1}));
  EXPECT_EQ(Ebsp::meeting(Durations{20ms, 30ms}, 15), (Steps{3, 2})) << "at 60 ms exactly";
  EXPECT_EQ(Ebsp::meeting(Durations{20ms, 30ms}, 2), (Steps{1, 1})) << "10 ms, as 40 and 30 ms";
  EXPECT_EQ(Ebsp::meeting(Durations{10ms, 95ms}, 15), (Steps{9, 1})) << "90 ms, not 100 ms";
  EXPECT_EQ(Ebsp::meeting(Durations{1ms, 100ms}, 15), (Steps{15, 1})) << "no closer";
  EXPECT_EQ(Ebsp::meeting(Durations{5ms}, 15), (Steps{1}));
}

/// Returns the least difference between the latest and the earliest end over all combinations of
/// steps, from 1 to `most`.
std::chrono::nanoseconds least_gap(const Durations& durations, Step most) {
  auto least = std::chrono::nanoseconds::max();
  Steps steps(durations.size(), 1);
  for (bool is_done = false; !is_done;) {
    auto first = std::chrono::nanoseconds::max();
    auto last = std::chrono::nanoseconds::min();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto end = durations[i] * static_cast<std::int64_t>(steps[i]);
      first = std::min(first, end);
      last = std::max(last, end);
    }
    least = std::min(least, last - first);
    std::size_t digit = 0;
    while (digit < steps.size() && steps[digit] == most) steps[digit++] = 1;
    is_done = digit == steps.size();
    if (!is_done) ++steps[digit];
  }
  return least;
}

TEST(Ebsp, EqualsTheBestOfAllCombinations) {
  Random random{7};
  for (int trial = 0; trial < 10'000; ++trial) {
    const Step most = 1 + random.below(5);
    Durations durations(1 + random.below(4));
    for (auto& duration : durations)
      duration = std::chrono::nanoseconds{1 + static_cast<std::int64_t>(random.below(40))};
    const Steps steps = Ebsp::meeting(durations, most);
    ASSERT_EQ(steps.size(), durations.size());
    auto first = std::chrono::nanoseconds::max();
    auto last = std::chrono::nanoseconds::min();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      ASSERT_GE(steps[i], 1U);
      ASSERT_LE(steps[i], most);
      const auto end = durations[i] * static_cast<std::int64_t>(steps[i]);
      first = std::min(first, end);
      last = std::max(last, end);
    }
    ASSERT_EQ(last - first, least_gap(durations, most)) << "trial " << trial;
  }
}

TEST(Ebsp, BeginsWithOneStepEach) {
  const Ebsp ebsp{.ahead = 15};
  const Pace known{.step = 4, .duration = 10ms};
  const Pace slow{.step = 9, .duration = 20ms};
  const Pace unknown{.step = 7};
  EXPECT_EQ(ebsp.round(std::vector{known, slow}), (Steps{6, 10}));
  EXPECT_EQ(ebsp.round(std::vector{known, unknown}), (Steps{5, 8}));
}

TEST(Ebsp, PromisesNothingAndHasNoSampledForm) {
  const Barrier ebsp{Ebsp{}};
  EXPECT_TRUE(has_rounds(ebsp));
  EXPECT_TRUE(needs_paces(ebsp));
  EXPECT_FALSE(is_bsp(ebsp));
  EXPECT_EQ(spread_bound(ebsp), std::nullopt);
  EXPECT_EQ(promised_floor(ebsp, 20), std::nullopt);
  EXPECT_FALSE(parse("pebsp:beta=2"));
  EXPECT_EQ(parse("ebsp:ahead=0").error().message,
            "barrier: ebsp: ahead=0 must be a whole number >= 1 and <= 1000");
}

}  // namespace
}  // namespace starling::barrier
