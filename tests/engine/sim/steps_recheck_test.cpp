/// Tests how the recheck policy affects the number of updates: 8 workers, one of them 4 times
/// slower, under pbsp with a sample of 2, relative to bsp. The design gives 2.39 for arrival, 1.04
/// to 1.10 for notify, and for notify with an interval 2.36 (a quarter of a step) and 1.67 (a whole
/// step). Steps of Exp(100 ms) give 2.38, 1.09, 2.42 and 1.68. If 3 ms more pass between draws, as
/// over a network, the last two are 2.37 and 1.67. Steps of almost constant length give other
/// numbers: 2.7, 1.00, 2.7 and 1.63.
#include <gtest/gtest.h>

#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {
namespace {

double mean_updates(const char* barrier, const char* recheck, const char* law) {
  auto options = options_of(barrier, 8, law, recheck);
  options.slowness = {1, 1, 1, 1, 1, 1, 1, 4};
  options.horizon = std::chrono::seconds{400};
  return mean(figures(runs(options, sanitized ? 1 : 50), mean_step));
}

double updates_relative_to_bsp(const char* recheck, const char* law = "exp:100ms") {
  return mean_updates("pbsp:beta=2", recheck, law) / mean_updates("bsp", "arrival", law);
}

/// Added to the tolerances in sanitizer builds, which make few runs.
constexpr double extra_tolerance = sanitized ? 0.2 : 0;

TEST(Recheck, DecidesTheOutcomeAsInTheDesign) {
  EXPECT_NEAR(updates_relative_to_bsp("arrival"), 2.39, 0.05 + extra_tolerance);
  EXPECT_NEAR(updates_relative_to_bsp("notify"), 1.07, 0.03 + extra_tolerance);
  EXPECT_NEAR(updates_relative_to_bsp("notify+interval:25ms"), 2.36, 0.1 + extra_tolerance);
  EXPECT_NEAR(updates_relative_to_bsp("notify+interval:28ms"), 2.36, 0.05 + extra_tolerance);
  EXPECT_NEAR(updates_relative_to_bsp("notify+interval:100ms"), 1.67, 0.03 + extra_tolerance);
}

TEST(Recheck, ByNoticeAloneIsAsSlowAsBspIfStepsAreRegular) {
  EXPECT_NEAR(updates_relative_to_bsp("notify", "const:100ms"), 1, 0.01);
  EXPECT_NEAR(updates_relative_to_bsp("notify", "gamma:mean=100ms,shape=400"), 1, 0.01);
}

TEST(Recheck, AutomaticIntervalIsAQuarterOfARegularStep) {
  EXPECT_NEAR(updates_relative_to_bsp("notify+interval:auto", "gamma:mean=100ms,shape=400"),
              updates_relative_to_bsp("notify+interval:25ms", "gamma:mean=100ms,shape=400"),
              0.02 + extra_tolerance);
}

}  // namespace
}  // namespace starling::sim
