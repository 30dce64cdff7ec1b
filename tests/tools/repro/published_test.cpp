/// Repeats the published simulation over 20 seeds and checks its figures. 1,000 workers make steps
/// of exp:100ms for 40 s, and draw again at arrivals. Slow: some ten million updates.
#include <gtest/gtest.h>

#include "starling/tools/repro/experiment_runner.hpp"
#include "starling/tools/sim/linear_learner.hpp"

namespace starling::program {
namespace {

/// The bounds within which the mean steps over 20 seeds must be.
struct Bounds {
  std::string barrier;
  double low;
  double high;
};

const std::vector<Bounds>& bounds() {
  static const std::vector<Bounds> published{{"bsp", 53, 55},
                                             {"ssp:s=4", 200, 204},
                                             {"ssp:s=5", 220, 224},
                                             {"pbsp:beta=10", 257, 260},
                                             {"pbsp:beta=4", 337, 345},
                                             {"pbsp:beta=16", 217, 221},
                                             {"pssp:s=4,beta=10", 364, 369},
                                             {"pssp:s=5,beta=10", 369, 374},
                                             {"asp", 398, 402}};
  return published;
}

/// Returns the mean steps of a worker, averaged over the seeds.
double steps_of(const ExperimentRunner& runner, const SimulatedSetting& setting) {
  return over_runs(runner.runs_of(setting), [](const SimRun& run) { return run.steps.mean; }).mean;
}

/// Returns the standard deviation of the workers' steps, averaged over the seeds.
double spread_of(const ExperimentRunner& runner, const SimulatedSetting& setting) {
  return over_runs(runner.runs_of(setting), [](const SimRun& run) { return run.steps.sd; }).mean;
}

TEST(PublishedSimulation, HasThePublishedMeansAndOrders) {
  ExperimentRunner runner{{.seeds = 20, .threads = 2, .quiet = true}};
  for (const auto& bound : bounds()) runner.request({.barrier = bound.barrier});
  runner.run();
  for (const auto& [barrier, low, high] : bounds()) {
    EXPECT_GE(steps_of(runner, {.barrier = barrier}), low) << barrier;
    EXPECT_LE(steps_of(runner, {.barrier = barrier}), high) << barrier;
  }
  const double sd = spread_of(runner, {.barrier = "asp"});
  EXPECT_GE(sd, 19);
  EXPECT_LE(sd, 21);
  const auto& five = published_five();
  for (std::size_t i = 1; i < five.size(); ++i) {
    EXPECT_LT(steps_of(runner, {.barrier = five[i - 1]}), steps_of(runner, {.barrier = five[i]}));
    EXPECT_LT(spread_of(runner, {.barrier = five[i - 1]}), spread_of(runner, {.barrier = five[i]}));
  }
}

TEST(PublishedSimulation, LearnsThreeTimesFasterUnderPsspWithStragglers) {
  ExperimentRunner runner{{.seeds = 20, .threads = 2, .quiet = true}};
  const SimulatedSetting bsp{.barrier = "bsp", .straggler = "5%:4x"};
  const SimulatedSetting pssp{.barrier = "pssp:s=4,beta=10", .straggler = "5%:4x"};
  runner.request_learning(bsp, false);
  runner.request_learning(pssp, false);
  runner.run();
  for (std::size_t i = 0; i < 20; ++i) {
    const auto bsp_time =
        time_to(runner.learning_runs_of(bsp)[i].errors, ExperimentRunner::error_goal);
    const auto pssp_time =
        time_to(runner.learning_runs_of(pssp)[i].errors, ExperimentRunner::error_goal);
    ASSERT_TRUE(bsp_time && pssp_time);
    EXPECT_GE(*bsp_time, 3 * *pssp_time);
  }
}

}  // namespace
}  // namespace starling::program
