/// Tests the simulation of steps with cases whose results can be computed by hand.
#include "starling/engine/sim/steps/steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

/// Returns options of two workers with steps of 100 ms and of 200 ms. Under bsp the first
/// waits 100 ms in every 200 ms.
StepOptions two_workers(const std::string& barrier, const std::string& recheck = "arrival") {
  StepOptions options = options_of(barrier, 2, "const:100ms", recheck);
  options.slowness = {1, 2};
  options.horizon = 1s + 50ms;
  return options;
}

/// Runs each test with exact and with plain sampling.
class EverySampling : public testing::TestWithParam<Sampling> {
 protected:
  [[nodiscard]] static StepResult run(StepOptions options) {
    options.sampling = GetParam();
    return simulate(options);
  }
};
INSTANTIATE_TEST_SUITE_P(All, EverySampling, testing::Values(Sampling::exact, Sampling::plain),
                         [](const auto& param) {
                           return param.param == Sampling::exact ? "exact" : "plain";
                         });

TEST_P(EverySampling, RunsAtItsOwnPaceUnderAsp) {
  const auto result = run(two_workers("asp"));
  EXPECT_EQ(result.steps, (std::vector<Step>{10, 5}));
  EXPECT_EQ(result.updates, 15U);
  EXPECT_EQ(result.max_lag, 6U) << "if both workers arrive at the same time, worker 0 is first";
  EXPECT_EQ(result.draws, 0U);
  EXPECT_EQ(result.waiting_share, 0);
  EXPECT_EQ(result.elapsed, 1s + 50ms);
  EXPECT_EQ(result.messages, (Messages{.arrivals = 15, .releases = 15}));
}

TEST_P(EverySampling, WaitsForTheSlowestUnderBsp) {
  const auto result = run(two_workers("bsp"));
  EXPECT_EQ(result.steps, (std::vector<Step>{5, 5}));
  EXPECT_EQ(result.max_lag, 1U);
  EXPECT_EQ(result.draws, 0U);
  EXPECT_DOUBLE_EQ(result.waiting_share, 0.5 / 2.1);
  EXPECT_EQ(result.messages, (Messages{.arrivals = 10, .releases = 10}));
}

/// The first worker begins step 4 only at 400 ms, when the other worker has made 2 steps. After
/// that, the first worker ends step c at (2c - 3) * 100 ms.
TEST_P(EverySampling, StaysWithinItsStalenessUnderSsp) {
  const auto result = run(two_workers("ssp:s=1"));
  EXPECT_EQ(result.steps, (std::vector<Step>{6, 5}));
  EXPECT_EQ(result.max_lag, 2U);
}

/// There are three draws in each round: that of the first worker fails, that of the second passes,
/// and the first worker draws again and passes.
TEST_P(EverySampling, CountsDrawsAndMessagesAtArrivals) {
  const auto result = run(two_workers("pbsp:beta=1"));
  EXPECT_EQ(result.steps, (std::vector<Step>{5, 5}));
  EXPECT_EQ(result.draws, 15U);
  EXPECT_EQ(result.passes, 10U);
  EXPECT_EQ(result.messages, (Messages{.arrivals = 10, .releases = 10}));
}

/// The last step of a worker is the end of its run, which is no arrival.
TEST_P(EverySampling, CountsNoArrivalOfTheLastStep) {
  auto options = two_workers("bsp");
  options.steps_max = 4;
  EXPECT_EQ(run(options).messages, (Messages{.arrivals = 6, .releases = 6}));
}

/// The first worker asks at 1 s, and again at 2, 3, ... 9 s, until the notice comes at 9.5 s.
TEST_P(EverySampling, AsksAgainForANoticeThatDoesNotCome) {
  auto options = two_workers("pbsp:beta=1", "notify");
  options.step_time = parse_distribution("const:1s").value();
  options.slowness = {1, 9.5};
  options.horizon = 10s;
  EXPECT_EQ(run(options).messages.notify_requests, 9U);
  options.mode = core::Mode::central;
  EXPECT_EQ(run(options).messages.total(), 4U) << "the coordinator knows every step";
}

/// The draws are the same if workers ask: the first draw leaves a request, and the laggard
/// sends a notice.
TEST_P(EverySampling, CountsQueriesNotifyRequestsAndNoticesIfWorkersAsk) {
  const auto result = run(two_workers("pbsp:beta=1", "notify"));
  EXPECT_EQ(result.steps, (std::vector<Step>{5, 5}));
  EXPECT_EQ(result.draws, 15U);
  EXPECT_EQ(result.passes, 10U);
  EXPECT_EQ(result.messages,
            (Messages{.queries = 15, .answers = 15, .notify_requests = 5, .notices = 5}));
}

/// The first worker's draws at 100, 130, 160 and 190 ms fail, and the one at 220 ms passes. The
/// other worker's draw at 200 ms passes.
TEST_P(EverySampling, DrawsAgainAtTheInterval) {
  auto options = two_workers("pbsp:beta=1", "interval:30ms");
  options.horizon = 250ms;
  const auto result = run(options);
  EXPECT_EQ(result.steps, (std::vector<Step>{1, 1}));
  EXPECT_EQ(result.draws, 6U);
  EXPECT_EQ(result.passes, 2U);
  EXPECT_DOUBLE_EQ(result.waiting_share, 0.12 / 0.5);
  EXPECT_EQ(result.messages, (Messages{.queries = 6, .answers = 6}));
}

/// The interval `auto` is a quarter of a step, here 25 ms.
TEST_P(EverySampling, DrawsAgainAQuarterOfItsStepLater) {
  auto automatic = two_workers("pbsp:beta=1", "interval:auto");
  const auto result = run(automatic);
  EXPECT_EQ(result.steps, run(two_workers("pbsp:beta=1", "interval:25ms")).steps);
  EXPECT_EQ(result.draws, run(two_workers("pbsp:beta=1", "interval:25ms")).draws);
}

/// The notice at 200 ms causes a draw that passes. The timer at 230 ms causes no draw, because the
/// worker does not wait any more.
TEST_P(EverySampling, DrawsAgainAtTheFirstOfNoticeAndTimer) {
  auto options = two_workers("pbsp:beta=1", "notify+interval:130ms");
  options.horizon = 250ms;
  const auto result = run(options);
  EXPECT_EQ(result.draws, 3U);
  EXPECT_EQ(result.messages,
            (Messages{.queries = 3, .answers = 3, .notify_requests = 1, .notices = 1}));
}

/// The first worker draws at 100 ms, at 160 ms (timer) and at 200 ms (arrival of the other).
TEST_P(EverySampling, CountsTheIntervalFromTheLastDraw) {
  auto options = two_workers("pbsp:beta=1", "arrival+interval:60ms");
  options.horizon = 250ms;
  const auto result = run(options);
  EXPECT_EQ(result.draws, 4U);
  EXPECT_EQ(result.passes, 2U);
  EXPECT_EQ(result.messages, (Messages{.arrivals = 2, .releases = 2}));
}

TEST_P(EverySampling, EndsWhenEveryoneHasReachedTheLastStep) {
  for (const char* barrier : {"bsp", "ssp:s=1", "pbsp:beta=1", "pssp:s=1,beta=1", "asp"}) {
    auto options = two_workers(barrier);
    options.steps_max = 4;
    const auto result = run(options);
    EXPECT_EQ(result.steps, (std::vector<Step>{4, 4})) << barrier;
    EXPECT_EQ(result.elapsed, 800ms) << barrier;
    EXPECT_EQ(result.curve.back().at, 800ms) << barrier;
    EXPECT_EQ(result.curve.back().min, 4U) << barrier;
  }
}

TEST_P(EverySampling, CountsNoTimeOfEndedWorkers) {
  auto options = two_workers("ssp:s=1");
  options.steps_max = 4;
  // The fast worker waits from 300 to 400 ms, until the other has made 2 steps, and ends at 500 ms.
  EXPECT_DOUBLE_EQ(run(options).waiting_share, 0.1 / 1.3);
}

TEST_P(EverySampling, CountsEndedWorkersAsInfinitelyFarAhead) {
  for (const char* recheck : {"arrival", "notify", "interval:10ms", "notify+interval:auto"}) {
    StepOptions options = options_of("pbsp:beta=2", 5, "exp:100ms", recheck);
    options.steps_max = 30;
    options.horizon = 1h;
    options.slowness = {1, 1, 2, 3, 5};
    const auto result = run(options);
    EXPECT_EQ(result.steps, std::vector<Step>(5, 30)) << recheck;
    EXPECT_LT(result.elapsed, 1h);
  }
}

TEST_P(EverySampling, RepeatsBitwiseFromItsSeed) {
  for (const char* recheck :
       {"arrival", "notify", "arrival+interval:7ms", "notify+interval:auto"}) {
    StepOptions options = options_of("pssp:s=1,beta=3", 20, "exp:100ms", recheck);
    options.horizon = 3s;
    const auto result = run(options);
    EXPECT_EQ(result, run(options)) << recheck;
    options.seed = 2;
    EXPECT_NE(result, run(options)) << recheck;
  }
}

/// A sample of all other workers equals the rule over all workers, and an empty sample equals asp:
/// the results are bitwise equal.
TEST_P(EverySampling, EqualsTheSimplerBarrierAtItsLimits) {
  const auto expect_same = [](const char* one, const char* other) {
    StepOptions options = options_of(one, 30);
    options.horizon = 3s;
    auto a = run(options);
    options.barrier = barrier::parse(other).value();
    const auto b = run(options);
    a.draws = b.draws;
    a.passes = b.passes;
    EXPECT_EQ(a, b) << one << " and " << other;
  };
  expect_same("pbsp:beta=29", "bsp");
  expect_same("pssp:s=2,beta=29", "ssp:s=2");
  expect_same("ssp:s=0", "bsp");
  expect_same("ssp:s=inf", "asp");
  expect_same("pbsp:beta=0", "asp");
  expect_same("pssp:s=2,beta=0", "asp");
}

TEST_P(EverySampling, NeverBreaksTheBoundOfAFullView) {
  for (const Step s : {0U, 1U, 4U}) {
    auto options = options_of("ssp:s=" + std::to_string(s), 50);
    options.horizon = 5s;
    EXPECT_EQ(run(options).max_lag, s + 1);
  }
}

TEST_P(EverySampling, LetsAWorkerThatIsAlonePass) {
  for (const char* barrier : {"bsp", "ssp:s=1", "asp", "pbsp:beta=0", "tuned:staleness=2"}) {
    auto options = options_of(barrier, 1, "const:100ms");
    options.horizon = 1s;
    const StepResult result = run(options);
    EXPECT_EQ(result.steps, std::vector<Step>{10}) << barrier;
    EXPECT_EQ(result.draws, 0U) << barrier;
  }
}

/// Runs a user's rule over all workers. For each step of the asking worker, counts the other
/// workers' steps that the rule is given.
class UserRule : public testing::Test {
 protected:
  using StepHistogram = std::map<Step, std::size_t>;

  StepResult run(const barrier::Predicate::Function& function, Step last) {
    StepOptions options = options_of("asp", 3, "const:100ms");
    options.slowness = {1, 2, 4};
    options.horizon = 10s;
    options.steps_max = last;
    options.barrier = {barrier::Predicate::make("spy", [&](Step own, std::span<const Step> steps) {
      EXPECT_EQ(steps.size(), 2U) << "the two other workers";
      for (const Step step : steps) ++seen[own][step];
      return function(own, steps);
    })};
    return simulate(options);
  }

  std::map<Step, StepHistogram> seen;
};

TEST_F(UserRule, IsAskedAtEachArrivalAndMayStopAllWorkers) {
  const auto stuck = run([](Step own, auto) { return own < 2; }, 3);
  EXPECT_EQ(stuck.steps, (std::vector<Step>{2, 2, 2}));
  EXPECT_EQ(stuck.elapsed, 10s);
  EXPECT_DOUBLE_EQ(stuck.waiting_share, (9.8 + 9.6 + 9.2) / 30);
  // At each arrival, the rule is asked once for all that wait at step 2.
  EXPECT_EQ(seen[2], (StepHistogram{{0, 5}, {1, 2}, {2, 7}}));
}

TEST_F(UserRule, SeesEndedWorkersInfinitelyFarAhead) {
  EXPECT_EQ(run([](Step, auto) { return true; }, 2).steps, (std::vector<Step>{2, 2, 2}));
  EXPECT_EQ(seen, (std::map<Step, StepHistogram>{{1, {{0, 3}, {barrier::finished, 3}}}}));
}

TEST(Messages, AreArrivalsAndReleasesIfACoordinatorKeepsTheSteps) {
  for (const char* recheck : {"arrival", "notify", "interval:10ms", "notify+interval:auto"})
    for (const char* barrier : {"asp", "pbsp:beta=2"}) {
      StepOptions options = options_of(barrier, 10, "exp:100ms", recheck);
      options.horizon = 2s;
      options.mode = core::Mode::central;
      const Messages central = simulate(options).messages;
      EXPECT_GT(central.arrivals, 0U) << barrier << " " << recheck;
      EXPECT_EQ(central.total(), central.arrivals + central.releases) << barrier << " " << recheck;
      options.mode = core::Mode::peer;
      const Messages peer = simulate(options).messages;
      EXPECT_EQ(peer.arrivals + peer.releases, 0U) << barrier << " " << recheck;
    }
}

/// Each worker that has stopped at the horizon has no release for its last arrival, at most.
TEST(Messages, HaveNoReleaseForTheStepsOfARun) {
  const auto unreleased = [](const char* barrier) {
    StepOptions options = options_of(barrier, 4, "gamma:mean=100ms,shape=400", "arrival");
    options.slowness = {2, 1, 1, 1};
    options.horizon = 20s;
    options.mode = core::Mode::central;
    const Messages messages = simulate(options).messages;
    return messages.arrivals - messages.releases;
  };
  for (const char* barrier : {"ssp:s=3", "fluent:s=3,p=0.5", "pfluent:s=3,p=0.5,beta=2"})
    EXPECT_LE(unreleased(barrier), 4U) << barrier;
  for (const char* barrier : {"dssp:low=3,high=15", "pdssp:low=3,high=15,beta=2"})
    EXPECT_GT(unreleased(barrier), 20U) << barrier;
}

TEST(SampledUserRule, WorksUnderEveryPolicy) {
  const auto half = barrier::Predicate::make("half", [](Step own, std::span<const Step> seen) {
    return 2 * std::ranges::count_if(seen, [&](Step step) { return step >= own; }) >=
           std::ssize(seen);
  });
  for (const char* recheck : {"arrival", "notify", "interval:10ms", "notify+interval:auto"}) {
    StepOptions options = options_of("asp", 20, "exp:100ms", recheck);
    options.barrier = barrier::sampled(half, 4);
    options.steps_max = 20;
    options.horizon = 1h;
    const auto result = simulate(options);
    EXPECT_EQ(result.steps, std::vector<Step>(20, 20)) << recheck;
    EXPECT_GT(result.draws, result.passes) << recheck;
  }
}

/// A point includes all events up to its time, and those at its time.
TEST(Curve, IsEvenlySpacedAndExact) {
  auto options = two_workers("bsp");
  options.horizon = 1s;
  options.points = 20;
  const auto curve = simulate(options).curve;
  ASSERT_EQ(curve.size(), 20U);
  EXPECT_EQ(curve[1], (Point{100ms, 1, 0, 1, 1, 0.5}));
  EXPECT_EQ(curve[2], (Point{150ms, 1, 0, 1, 1, 0.5}));
  EXPECT_EQ(curve[3], (Point{200ms, 2, 1, 1, 1, 0}));
  EXPECT_EQ(curve[19], (Point{1s, 10, 5, 5, 5, 0}));
}

TEST(Curve, HasTheMedianOfAllWorkers) {
  StepOptions options = options_of("asp", 101);
  options.horizon = 5s;
  const auto result = simulate(options);
  auto sorted = result.steps;
  std::ranges::sort(sorted);
  const Point& end = result.curve.back();
  EXPECT_EQ(end.median, sorted[50]);
  EXPECT_EQ(end.min, sorted.front());
  EXPECT_EQ(end.max, sorted.back());
  EXPECT_EQ(end.updates, std::accumulate(sorted.begin(), sorted.end(), std::uint64_t{0}));
}

/// Records the calls that it receives.
struct CallRecorder : Learner {
  void on_begin(MemberId worker, Step step, Time now) override { write('b', worker, step, now); }
  void on_end(MemberId worker, Step step, Time now) override { write('e', worker, step, now); }
  void write(char what, MemberId worker, Step step, Time now) {
    text += what + std::to_string(worker) + "/" + std::to_string(step) + "@" +
            std::to_string(now / 1ms) + " ";
  }
  std::string text;
};

TEST(Learner, IsCalledAsEachStepBeginsAndEnds) {
  CallRecorder recorder;
  auto options = two_workers("bsp");
  options.horizon = 350ms;
  (void)simulate(options, &recorder);
  EXPECT_EQ(recorder.text, "b0/1@0 b1/1@0 e0/1@100 e1/1@200 b1/2@200 b0/2@200 e0/2@300 ");
}

TEST(Progress, IsReportedAndMayEndTheSimulation) {
  StepOptions options = options_of("asp", 1000);
  std::vector<double> reported;
  options.on_progress = [&](double done) {
    reported.push_back(done);
    return reported.size() < 3;
  };
  const auto result = simulate(options);
  ASSERT_EQ(reported.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(reported));
  EXPECT_GT(reported.front(), 0);
  EXPECT_LT(result.elapsed, 40s);
  EXPECT_NEAR(reported.back(), static_cast<double>(result.elapsed.count()) / 4e10, 1e-3);
  EXPECT_EQ(result.curve.back().updates, result.updates);
}

}  // namespace
}  // namespace starling::sim
