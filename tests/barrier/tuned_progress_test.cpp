// The law of tuned:progress: how the share of waiting follows the descents that a worker sees.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "starling/barrier/tuner.hpp"
#include "starling/base/random.hpp"

namespace starling::barrier {
namespace {

constexpr Tuned progress{Tuned::Measure::progress};

/// Returns the state after `steps` steps that all see `descent`, and wait for the current share.
TunerState after(TunerState state, int steps, std::optional<Descent> descent) {
  for (int i = 0; i < steps; ++i) {
    const double waited = state.waiting_share / (1 - state.waiting_share);
    state =
        next(progress, state,
             {.step_time = 1, .waited = waited, .answers = 1, .mean_lag = 2, .descent = descent});
  }
  return state;
}

TEST(TunedProgress, WaitsMoreWhileMovesGoTooFar) {
  const TunerState first = first_state(progress);
  const TunerState state = after(first, 100, Descent{1, -1});
  EXPECT_DOUBLE_EQ(state.waiting_share, 0.5);
  EXPECT_GT(state.beta(), 8 * first.beta()) << "beta follows the share";
  EXPECT_EQ(state.staleness(), 0);
  EXPECT_DOUBLE_EQ(after(first, 100, Descent{-1, -1}).waiting_share, 0.5)
      << "a model that moves uphill has gone too far before";
}

TEST(TunedProgress, WaitsLessWhileMovesAreShort) {
  const TunerState tight = after(first_state(progress), 100, Descent{1, -1});
  const TunerState state = after(tight, 150, Descent{1, 1});
  EXPECT_DOUBLE_EQ(state.waiting_share, 0.01);
  EXPECT_LT(state.beta(), tight.beta() / 8);
}

TEST(TunedProgress, StaysIfStepsTellNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const TunerState first = first_state(progress);
  for (const auto& descent : {std::optional<Descent>{}, std::optional{Descent{nan, 1}},
                              std::optional{Descent{1, infinity}}}) {
    const TunerState state = after(first, 50, descent);
    EXPECT_EQ(state.waiting_share, first.waiting_share);
    EXPECT_EQ(state.descent, first.descent);
  }
}

/// Only the ratio counts, so the scale of the loss does not.
TEST(TunedProgress, DependsOnNoScale) {
  const TunerState small = after(first_state(progress), 20, Descent{0x1p-30, -0x1p-31});
  const TunerState large = after(first_state(progress), 20, Descent{0x1p30, -0x1p29});
  EXPECT_DOUBLE_EQ(small.waiting_share, large.waiting_share);
  EXPECT_GT(small.waiting_share, first_state(progress).waiting_share);
}

/// If the ratio is a function of the waiting that rises with it, the share settles where the ratio
/// is the wanted one, and stays there.
TEST(TunedProgress, SettlesWithoutOscillation) {
  TunerState state = first_state(progress);
  Random random{3};
  double lowest = 1;
  double highest = 0;
  for (int i = 0; i < 2000; ++i) {
    // The ratio is 0.2 at a share of 10 %, and changes by 0.3 for each octave of the share.
    const double ratio = 0.2 + 0.3 * std::log2(state.waiting_share / 0.1);
    const double noise = 0.2 * random.normal();
    const double waited = state.waiting_share / (1 - state.waiting_share);
    state = next(progress, state,
                 {.step_time = 1,
                  .waited = waited,
                  .answers = 1,
                  .mean_lag = 2,
                  .descent = Descent{1, ratio + noise}});
    if (i < 200) continue;
    lowest = std::min(lowest, state.waiting_share);
    highest = std::max(highest, state.waiting_share);
  }
  EXPECT_GT(lowest, 0.07);
  EXPECT_LT(highest, 0.14);
}

/// The share says how long the worker wants to wait; beta rises until it waits for that long.
TEST(TunedProgress, DrawsMoreOthersWhileItWaitsForLessThanItsShare) {
  TunerState state = first_state(progress);
  for (int i = 0; i < 100; ++i)
    state = next(progress, state, {.step_time = 1, .answers = 1, .mean_lag = 2});
  EXPECT_EQ(state.waiting_share, first_state(progress).waiting_share);
  EXPECT_GT(state.beta(), 8 * first_state(progress).beta());
}

/// The slowest worker has nobody to wait for: a larger sample would only cost questions.
TEST(TunedProgress, OfTheSlowestWorkerDoesNotAskEverMore) {
  TunerState state = first_state(progress);
  for (int i = 0; i < 1000; ++i)
    state = next(progress, state,
                 {.step_time = 1, .answers = 1, .mean_lag = 0, .descent = Descent{1, -1}});
  EXPECT_LT(state.beta(), 1);
}

}  // namespace
}  // namespace starling::barrier
