// tuned:progress waits where stale updates harm learning, and does not where they do not.
#include <gtest/gtest.h>

#include "starling/engine/sim/steps/steps.hpp"
#include "tests/engine/sim/tuned/progress_runs.hpp"

namespace starling::sim {
namespace {

constexpr std::uint64_t seeds = 3;

TEST(Progress, IsHardlySlowerThanAspIfStaleUpdatesDoNoHarm) {
  const ProgressScenario harmless{.stragglers = 1, .slowness = 4, .rate = 0.2};
  const ProgressFigures asp = mean_progress_of("asp", harmless, seeds);
  const ProgressFigures tuned = mean_progress_of("tuned:progress", harmless, seeds);
  EXPECT_LT(tuned.loss, 1.1 * asp.loss);
  EXPECT_LT(tuned.waiting, 0.05);
}

TEST(Progress, LearnsWhereAspDiverges) {
  const ProgressScenario harmful{.stragglers = 1, .slowness = 4, .rate = 0.15, .momentum = 0.9};
  const ProgressFigures asp = mean_progress_of("asp", harmful, seeds);
  const ProgressFigures tuned = mean_progress_of("tuned:progress", harmful, seeds);
  EXPECT_GT(asp.loss, 1) << "more than at the start";
  EXPECT_LT(tuned.loss, 0.02);
  EXPECT_GT(tuned.waiting, 0.1);
}

TEST(Progress, IsARepeatableFunctionOfTheSeed) {
  const ProgressScenario scenario{.rate = 1.8, .horizon = std::chrono::seconds{2}};
  EXPECT_EQ(progress_of("tuned:progress", scenario, 5).loss,
            progress_of("tuned:progress", scenario, 5).loss);
}

}  // namespace
}  // namespace starling::sim
