/// The published simulation over 20 seeds, held to what it must give: 1,000 workers, exp:100ms, 40
/// s, recheck at arrivals. Slow: some ten million updates.
#include <gtest/gtest.h>

#include "starling/tools/repro/experiment_runner.hpp"
#include "starling/tools/sim/linear_learner.hpp"

namespace starling::program {
namespace {

/// Where the mean over 20 seeds must lie.
struct Band {
  std::string barrier;
  double low;
  double high;
};

const std::vector<Band>& bands() {
  static const std::vector<Band> all{{"bsp", 53, 55},
                                     {"ssp:s=4", 200, 204},
                                     {"ssp:s=5", 220, 224},
                                     {"pbsp:beta=10", 257, 260},
                                     {"pbsp:beta=4", 337, 345},
                                     {"pbsp:beta=16", 217, 221},
                                     {"pssp:s=4,beta=10", 364, 369},
                                     {"pssp:s=5,beta=10", 369, 374},
                                     {"asp", 398, 402}};
  return all;
}

double steps_of(const ExperimentRunner& runner, const World& world) {
  return over_runs(runner.of(world), [](const SimRun& run) { return run.steps.mean; }).mean;
}

double spread_of(const ExperimentRunner& runner, const World& world) {
  return over_runs(runner.of(world), [](const SimRun& run) { return run.steps.sd; }).mean;
}

TEST(PublishedSimulation, GivesThePublishedMeansAndOrders) {
  ExperimentRunner runner{{.seeds = 20, .threads = 2, .quiet = true}};
  for (const auto& band : bands()) runner.want({.barrier = band.barrier});
  runner.run();
  for (const auto& [barrier, low, high] : bands()) {
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

TEST(PublishedSimulation, LearnsThreeTimesSoonerBesideStragglers) {
  ExperimentRunner runner{{.seeds = 20, .threads = 2, .quiet = true}};
  const World bsp{.barrier = "bsp", .straggler = "5%:4x"};
  const World pssp{.barrier = "pssp:s=4,beta=10", .straggler = "5%:4x"};
  runner.want_learning(bsp, false);
  runner.want_learning(pssp, false);
  runner.run();
  for (std::size_t i = 0; i < 20; ++i) {
    const auto slow = time_to(runner.learned(bsp)[i].errors, ExperimentRunner::error_goal);
    const auto fast = time_to(runner.learned(pssp)[i].errors, ExperimentRunner::error_goal);
    ASSERT_TRUE(slow && fast);
    EXPECT_GE(*slow, 3 * *fast);
  }
}

}  // namespace
}  // namespace starling::program
