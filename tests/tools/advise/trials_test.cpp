/// Tests the simulated trials against exact figures, and the choice of a winner.
#include "starling/tools/advise/trials.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <span>

#include "starling/tools/advise/advice.hpp"
#include "starling/tools/advise/winner_map.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Returns steps that take 100 ms, and twice as long on the last of `workers` workers if
/// `has_straggler`.
StepTimes constant_steps(std::size_t workers, bool has_straggler) {
  return [=](core::MemberId worker, core::Step, Random&) -> core::Time {
    return has_straggler && worker + 1 == workers ? 200ms : 100ms;
  };
}

Trial trial_of(const char* barrier, bool has_straggler) {
  return run_trial({.barrier = barrier::parse(barrier).value(),
                    .workers = 4,
                    .step_times = constant_steps(4, has_straggler),
                    .horizon = 20s + 1ms});
}

/// Runs four equal workers that never finish a step at the same moment.
Trial staggered_asp() {
  return run_trial(
      {.barrier = {barrier::Asp{}},
       .workers = 4,
       .step_times = [](core::MemberId worker, core::Step step, Random&) -> core::Time {
         return step == 1 ? 100ms + 10ms * worker : 100ms;
       },
       .horizon = 20s});
}

TEST(Trial, BspGoesAtThePaceOfTheSlowest) {
  const Trial trial = trial_of("bsp", true);
  EXPECT_EQ(trial.updates, 400);
  EXPECT_NEAR(trial.waiting_share, 3.0 / 8, 0.01);
  EXPECT_EQ(trial.max_lag, 1);
  EXPECT_EQ(trial.staleness, 0);
}

TEST(Trial, AspMakesAllUpdatesAndEachMissesThoseOfTheOthers) {
  const Trial slow = trial_of("asp", true);
  EXPECT_EQ(slow.updates, 3 * 200 + 100);
  EXPECT_EQ(slow.waiting_share, 0);
  EXPECT_EQ(slow.max_lag, 100);
  const Trial equal = staggered_asp();
  EXPECT_NEAR(equal.updates, 800, 4);
  EXPECT_NEAR(equal.staleness, 3, 0.01);  // but in the first step, in which some are missing
}

TEST(Trial, EbspLetsConstantSpeedsMeet) {
  const Trial trial = trial_of("ebsp:ahead=15", true);
  EXPECT_GE(trial.updates, 690);
  EXPECT_LE(trial.updates, 700);
  EXPECT_LT(trial.waiting_share, 0.01);
}

/// Without noise, a step of bsp multiplies a parameter by 1 - rate * curvature.
TEST(Trial, BspReachesTheLossWhenGradientDescentDoes) {
  constexpr std::array<double, 4> curvatures{1, 0.3, 0.1, 0.03};
  const Trial trial = trial_of("bsp", false);
  for (std::size_t r = 0; r < learning_rates.size(); ++r) {
    int steps = 0;
    for (double loss = 1; loss > target_loss; ++steps) {
      loss = 0;
      for (const double h : curvatures)
        loss += std::pow(1 - learning_rates[r] * h, 2 * (steps + 1)) / curvatures.size();
    }
    ASSERT_TRUE(trial.seconds_to_loss[r]);
    EXPECT_NEAR(*trial.seconds_to_loss[r], 0.1 * steps, 0.1001) << learning_rates[r];
  }
}

/// If each of P workers' updates misses P - 1 others, gradient descent with rate r / P for each
/// update is stable only below r = 2 P sin(pi / (4 P - 2)), which is 1.78 for P = 4.
TEST(Trial, AspIsUnstableAtALargeLearningRate) {
  const Trial trial = staggered_asp();
  EXPECT_TRUE(trial.seconds_to_loss[0]);
  EXPECT_FALSE(trial.seconds_to_loss[1]);
}

TEST(Trials, DependOnTheSeedAndNotOnTheThreads) {
  std::vector<TrialOptions> settings;
  for (const char* barrier : {"bsp", "pssp:s=3,beta=1", "ebsp:ahead=15"})
    settings.push_back({.barrier = barrier::parse(barrier).value(),
                        .workers = 4,
                        .step_times = step_times_of({4, 0.25, 2, 0.3}),
                        .horizon = 5s,
                        .points = 1});
  const auto ignore = [](double) {};
  const auto one = run_trials(settings, 3, 1, ignore);
  const auto two = run_trials(settings, 3, 2, ignore);
  for (std::size_t i = 0; i < one.size(); ++i)
    for (std::size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(one[i].trials[s].updates, two[i].trials[s].updates);
      EXPECT_EQ(one[i].trials[s].waiting_share, two[i].trials[s].waiting_share);
      EXPECT_EQ(one[i].trials[s].seconds_to_loss, two[i].trials[s].seconds_to_loss);
    }
  EXPECT_NE(one[0].trials[0].waiting_share, one[0].trials[1].waiting_share);
}

BarrierFigures figures(double updates, double staleness, double seconds) {
  BarrierFigures figures;
  figures.updates.mean = updates;
  figures.staleness.mean = staleness;
  if (seconds > 0) figures.seconds_to_loss[0] = Summary{.mean = seconds};
  return figures;
}

TEST(Winner, IsTheLeastStaleOfThoseWithinFivePercent) {
  const std::vector<BarrierFigures> barriers{figures(100, 0, 2), figures(196, 2, 1.04),
                                             figures(200, 3, 1), figures(90, 1, 0)};
  const auto updates = winner_of(barriers, Measure::updates);
  ASSERT_TRUE(updates);
  EXPECT_EQ(updates->barrier, 1U);
  EXPECT_EQ(updates->equals, std::vector<std::size_t>{2});
  EXPECT_EQ(winner_of(barriers, Measure::staleness)->barrier, 1U);
  EXPECT_EQ(winner_of(barriers, Measure::seconds_at_small_rate)->barrier, 1U);
  EXPECT_FALSE(winner_of(barriers, Measure::seconds_at_large_rate));
}

TEST(BarriersToCompare, RunAndDifferForEachNumberOfWorkers) {
  for (const core::Mode mode : {core::Mode::central, core::Mode::hybrid, core::Mode::peer})
    for (const std::size_t workers : {2U, 3U, 4U, 64U}) {
      const auto barriers = barriers_to_compare(workers, mode);
      EXPECT_GE(barriers.size(), 3U);
      for (const barrier::Barrier& barrier : barriers) {
        const auto valid = check({.mode = mode, .barrier = barrier, .workers = workers});
        EXPECT_TRUE(valid) << barrier::print(barrier) << ": " << valid.error().message;
      }
    }
}

TEST(WinnerMap, HasEachKindOfClusterOnce) {
  WinnerMapOptions options;
  const auto clusters = clusters_of(options);
  // For each number of workers and each jitter: equal workers, and two shares with three
  // slownesses.
  EXPECT_EQ(clusters.size(), 3U * 3 * (1 + 2 * 3));
  for (std::size_t i = 0; i < clusters.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(clusters[i] == clusters[j]);
}

/// Makes the advice for workers with these recorded step times.
Advice advice_for(StepTrace trace, const std::vector<const char*>& barriers) {
  AdviseOptions options{.seeds = 5, .threads = 2};
  for (const char* barrier : barriers) options.barriers.push_back(barrier::parse(barrier).value());
  return make_advice(options, std::make_shared<const StepTrace>(std::move(trace)), [](double) {})
      .value();
}

std::string advised(const Advice& advice) {
  const auto& winner = advice.winner(Measure::seconds_at_small_rate);
  return winner ? barrier::print(advice.barriers[winner->barrier].barrier) : "none";
}

/// If no worker is ever late, nothing is gained by letting any be ahead.
TEST(Advice, IsBspForEqualConstantSteps) {
  const StepTrace trace(4, {"w", std::vector<core::Time>(20, 100ms)});
  const Advice advice = advice_for(trace, {});
  EXPECT_EQ(advised(advice), "bsp");
  for (const auto& winner : advice.winners) {
    ASSERT_TRUE(winner);
    EXPECT_EQ(winner->barrier, 0U);
  }
}

/// A worker that is always slow sets the pace of bsp and of ssp, but not that of ebsp.
TEST(Advice, IsEbspForAPermanentStraggler) {
  StepTrace trace(4, {"w", std::vector<core::Time>(20, 100ms)});
  trace.back().durations.assign(20, 200ms);
  EXPECT_EQ(advised(advice_for(trace, {"bsp", "ssp:s=3", "ebsp:ahead=15"})), "ebsp:ahead=15");
}

/// Each worker is late for one step of 20, never two at a time for long: ssp absorbs it.
TEST(Advice, IsSspForTransientDelays) {
  StepTrace trace(4, {"w", std::vector<core::Time>(20, 100ms)});
  for (RecordedWorker& worker : trace) worker.durations[7] = 400ms;
  EXPECT_EQ(advised(advice_for(trace, {"bsp", "ssp:s=3"})), "ssp:s=3");
}

TEST(Advice, RunsForAsManyStepsOfTheSlowestAsItWasAskedTo) {
  StepTrace trace(2, {"w", std::vector<core::Time>(20, 100ms)});
  trace.back().durations.assign(20, 250ms);
  EXPECT_EQ(advice_for(trace, {"bsp", "asp"}).horizon, 37500ms);
}

TEST(Trial, SaysWhyItsJobStalls) {
  const auto never = [](barrier::Step, std::span<const barrier::Step>) { return false; };
  const Trial trial = run_trial(
      {.barrier = {barrier::Predicate::make("never", never)},
       .workers = 2,
       .step_times = [](core::MemberId, core::Step, Random&) -> core::Time { return 100ms; },
       .horizon = 2s});
  EXPECT_EQ(trial.error, "the job stalls at step 1: no event is left");
}

}  // namespace
}  // namespace starling::program
