#include "starling/tools/sim/runs.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

using namespace std::chrono_literals;

sim::StepResult result_with(std::vector<sim::Step> steps) {
  sim::StepResult result;
  result.steps = std::move(steps);
  result.elapsed = 2s;
  for (const sim::Step step : result.steps) result.updates += step;
  return result;
}

TEST(Run, SummarisesTheStepsOfItsWorkers) {
  const SimRun run = figures_of({.workers = 4, .seed = 7}, result_with({9, 1, 4, 4}));
  EXPECT_EQ(run.seed, 7U);
  EXPECT_DOUBLE_EQ(run.steps.mean, 4.5);
  EXPECT_EQ(run.steps.min, 1);
  EXPECT_EQ(run.steps.max, 9);
  EXPECT_EQ(run.median, 4);
  EXPECT_EQ(run.histogram,
            (std::vector<std::pair<sim::Step, std::uint64_t>>{{1, 1}, {4, 2}, {9, 1}}));
  EXPECT_DOUBLE_EQ(updates_per_second(run), 9);
}

TEST(Run, HasTheMeanOfTheMiddleTwoStepsAsItsMedian) {
  EXPECT_EQ(figures_of({.workers = 4}, result_with({8, 2, 5, 1})).median, 3.5);
  EXPECT_EQ(figures_of({.workers = 3}, result_with({8, 2, 5})).median, 5);
}

TEST(Run, WithoutUpdatesHasNoMessagesAStep) {
  EXPECT_EQ(messages_a_step(figures_of({.workers = 1}, result_with({0}))), 0);
}

TEST(Runs, GiveOneDistributionOfSteps) {
  const SimRuns runs{figures_of({.workers = 2}, result_with({3, 5})),
                     figures_of({.workers = 2}, result_with({3, 9}))};
  const Series cdf = steps_cdf("asp", runs);
  EXPECT_EQ(cdf.name, "asp");
  std::vector<std::pair<double, double>> points;
  for (const auto& point : cdf.points) points.emplace_back(point.x, point.y);
  EXPECT_EQ(points, (std::vector<std::pair<double, double>>{{3, 0}, {3, 0.5}, {5, 0.75}, {9, 1}}));
}

TEST(Runs, KeepTheirLastPointInTheAverageOnceTheyHaveEnded) {
  SimRun longer{.workers = 1};
  longer.curve = {{.at = 1s, .updates = 2}, {.at = 2s, .updates = 6}};
  SimRun shorter{.workers = 1};
  shorter.curve = {{.at = 1s, .updates = 4}};
  const Series curve = over_time("bsp", {longer, shorter}, [](const SimRun&, const sim::Point& p) {
    return static_cast<double>(p.updates);
  });
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.points[0].x, 1);
  EXPECT_EQ(curve.points[0].y, 3);
  EXPECT_EQ(curve.points[1].x, 2);
  EXPECT_EQ(curve.points[1].y, 5);
}

TEST(Runs, DoNotDependOnTheNumberOfThreads) {
  std::vector<sim::StepOptions> options(6, {.workers = 20, .horizon = 2s});
  for (std::size_t i = 0; i < options.size(); ++i) {
    options[i].seed = i / 2;
    options[i].barrier = i % 2 == 0 ? barrier::sampled(barrier::Ssp{1}, 3) : barrier::Barrier{};
  }
  const SimRuns alone = simulate_all(options, 1, [](const OverallProgress&) {});
  const SimRuns together = simulate_all(options, 3, [](const OverallProgress&) {});
  for (std::size_t i = 0; i < options.size(); ++i) {
    EXPECT_EQ(alone[i].seed, options[i].seed);
    EXPECT_EQ(alone[i].histogram, together[i].histogram);
    EXPECT_EQ(alone[i].curve, together[i].curve);
    EXPECT_GT(alone[i].updates, 20U);
  }
}

TEST(Runs, BeginWithTheCostlierBarriers) {
  std::vector<ProgressEstimator::Kind> kinds;
  for (const char* text : {"bsp", "ssp:s=4", "pbsp:beta=2", "pssp:s=4,beta=2", "asp"})
    kinds.push_back(kind_of(kinds.size(), barrier::parse(text).value()));
  EXPECT_EQ(costliest_first(kinds), (std::vector<std::size_t>{3, 2, 4, 1, 0}));
  kinds = {{0, 0.5}, {0, 0.5}, {1, 1}, {1, 1}};
  EXPECT_EQ(costliest_first(kinds), (std::vector<std::size_t>{2, 0, 3, 1}))
      << "one piece of each kind comes first";
  kinds.assign(3, kinds[0]);
  EXPECT_EQ(costliest_first(kinds), (std::vector<std::size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace starling::program
