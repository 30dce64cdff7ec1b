// Checks which figures of a live run are compared with its simulations, and when they agree.
#include "starling/tools/twin/twin.hpp"

#include <gtest/gtest.h>

#include "starling/tools/twin/twin_report.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

const FigureComparison& figure(const std::vector<FigureComparison>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &FigureComparison::name);
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(Quantile, LiesBetweenTheValuesAroundIt) {
  const std::vector<double> values{1, 2, 4, 8};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 8);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.75), 5);
  EXPECT_EQ(quantile(std::vector<double>{7}, 0.995), 7);
}

/// A step takes 10 ms, and 30 ms for the straggler. At 95 ms the fast workers are in their tenth
/// step and the straggler is in its fourth; they finish these steps.
TEST(SimulatedTwin, FinishesTheStepsThatHaveBegun) {
  sim::StepOptions options;
  options.workers = 4;
  options.barrier = {barrier::Asp{}};
  options.step_time = Distribution{laws::Constant{10ms}};
  options.slowness = {1, 1, 1, 3};
  options.horizon = 95ms;
  const RunFigures run = simulate_twin(options);
  EXPECT_EQ(run.steps_min, 4);
  EXPECT_EQ(run.steps_median, 10);
  EXPECT_EQ(run.steps_max, 10);
  EXPECT_EQ(run.updates, 34);
  EXPECT_EQ(run.waiting_share, 0);
  EXPECT_EQ(run.elapsed_s, 0.095);
}

/// A worker that waits when the time is up begins no further step.
TEST(SimulatedTwin, BeginsNoStepAfterItsTimeIsUp) {
  sim::StepOptions options;
  options.workers = 2;
  options.barrier = {barrier::Bsp{}};
  options.step_time = Distribution{laws::Constant{10ms}};
  options.slowness = {1, 3};
  options.horizon = 75ms;
  const RunFigures run = simulate_twin(options);
  EXPECT_EQ(run.steps_min, 3);
  EXPECT_EQ(run.steps_max, 3);
  EXPECT_EQ(run.max_lag, 1);
  EXPECT_DOUBLE_EQ(run.waiting_share, 45.0 / 150);
}

TEST(SimulatedTwin, AddsTheOverheadOnceToAStepOfAStraggler) {
  sim::StepOptions options;
  options.workers = 2;
  options.barrier = {barrier::Asp{}};
  options.step_time = Distribution{laws::Constant{10ms}};
  options.slowness = {1, 3};
  options.overhead = 2ms;
  options.horizon = 1h;
  options.steps_max = 5;
  const RunFigures run = simulate_twin(options);
  EXPECT_EQ(run.updates, 10);
  EXPECT_DOUBLE_EQ(run.elapsed_s, 5 * 0.032);
}

TEST(Comparison, AllowsFivePercentBeyondTheQuantiles) {
  std::vector<RunFigures> simulated;
  for (int i = 0; i <= 200; ++i)
    simulated.push_back({.updates = 1000.0 + i, .max_lag = 4, .waiting_share = 0.5});
  RunFigures live{.updates = 1000, .max_lag = 4, .waiting_share = 0.5};
  const auto compared = compare(live, simulated, false);
  const FigureComparison& updates = figure(compared, "updates");
  EXPECT_EQ(updates.low, 1001);
  EXPECT_EQ(updates.median, 1100);
  EXPECT_EQ(updates.high, 1199);
  EXPECT_DOUBLE_EQ(updates.allowed_min, 0.95 * 1001);
  EXPECT_DOUBLE_EQ(updates.allowed_max, 1.05 * 1199);
  const auto inside = [&](double value) {
    live.updates = value;
    return figure(compare(live, simulated, false), "updates").is_inside();
  };
  EXPECT_TRUE(inside(951));
  EXPECT_FALSE(inside(950));
  EXPECT_TRUE(inside(1258));
  EXPECT_FALSE(inside(1259));
}

/// If no worker waits, 5 % of the quantile would be 0.
TEST(Comparison, AllowsTheWaitingShareAtLeastOnePercentagePoint) {
  const auto inside = [](double live, double simulated) {
    const RunFigures one{.waiting_share = simulated};
    const auto all = compare({.waiting_share = live}, std::span{&one, 1}, true);
    return figure(all, "waiting_share").is_inside();
  };
  EXPECT_TRUE(inside(0.0099, 0));
  EXPECT_FALSE(inside(0.0101, 0));
  EXPECT_TRUE(inside(0.52, 0.5));
  EXPECT_FALSE(inside(0.53, 0.5));
  EXPECT_FALSE(inside(0.47, 0.5));
}

/// If a job made all its steps, their number is always the same; therefore the time is compared.
TEST(Comparison, ComparesTheTimeIfAllStepsWereMade) {
  const RunFigures run{.updates = 100, .elapsed_s = 2};
  const auto names = [](const std::vector<FigureComparison>& all) {
    std::string text;
    for (const auto& compared : all) text += compared.name + " ";
    return text;
  };
  EXPECT_EQ(names(compare(run, std::span{&run, 1}, true)), "elapsed_s max_lag waiting_share ");
  EXPECT_EQ(names(compare(run, std::span{&run, 1}, false)),
            "updates steps_min steps_median steps_max max_lag waiting_share ");
}

TEST(Report, SaysWhichFigureIsNotAsSimulated) {
  SimJob job;
  job.barriers = {{barrier::Bsp{}}};
  job.options.workers = 3;
  const RunFigures simulated{.updates = 100, .max_lag = 1, .waiting_share = 0.25};
  TwinReport report{.job = job, .live = simulated, .figures = {}};
  report.live.elapsed_s = 1.5;
  report.figures = compare(report.live, std::span{&simulated, 1}, false);
  EXPECT_TRUE(do_all_agree(report));
  EXPECT_NE(twin_table(report).find("the live run is as simulated"), std::string::npos);
  report.live.updates = 150;
  report.figures = compare(report.live, std::span{&simulated, 1}, false);
  EXPECT_FALSE(do_all_agree(report));
  const std::string table = twin_table(report);
  EXPECT_NE(table.find("bsp, 3 workers, central, delay exp:100ms: 1.5 s live, 1 simulation\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("1 of 6 figures of the live run are not as simulated"), std::string::npos)
      << table;
  EXPECT_NE(twin_json(report).find(R"("updates":{"live":150.0,"low":100.0)"), std::string::npos)
      << twin_json(report);
}

}  // namespace
}  // namespace starling::program
