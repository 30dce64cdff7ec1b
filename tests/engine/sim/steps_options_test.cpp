/// Tests which options of a simulation of steps are refused, and the estimate of its memory.
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

/// A change that makes options invalid, and the error message.
struct BadSteps {
  const char* name;
  void (*spoil)(StepOptions&);
  const char* why;
};

class Check : public testing::TestWithParam<BadSteps> {};

TEST_P(Check, RefusesWithTheValueAndTheValidOnes) {
  StepOptions options = options_of("bsp", 10);
  EXPECT_TRUE(check(options));
  GetParam().spoil(options);
  const auto result = check(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    All, Check,
    testing::Values(
        BadSteps{"NoWorkers", [](StepOptions& o) { o.workers = 0; },
                 "workers: 0; valid: 1 to 2147483648"},
        BadSteps{"OneWorkerWithASample",
                 [](StepOptions& o) {
                   o.workers = 1;
                   o.barrier = barrier::sampled(barrier::Bsp{}, 1);
                 },
                 "barrier pbsp:beta=1: beta=1, but a lone worker has no others; valid: beta = 0, "
                 "as in pbsp:beta=0"},
        BadSteps{"AWorkerThatHandsInEarly", [](StepOptions& o) { o.barrier = {barrier::Absp{}}; },
                 "barrier absp: hands in some of a step's samples, and the step level simulates "
                 "steps without samples; valid: --level protocol, or another barrier"},
        BadSteps{
            "ABarrierThatMovesWithGradients",
            [](StepOptions& o) { o.barrier = {barrier::Tuned{barrier::Tuned::Measure::progress}}; },
            "barrier tuned:progress: moves with the gradients of a model, and the step level "
            "simulates steps without gradients; valid: --level protocol, tuned:waiting=5%, "
            "tuned:staleness=3"},
        BadSteps{
            "BarrierWithRounds", [](StepOptions& o) { o.barrier = {barrier::Ebsp{}}; },
            "barrier ebsp:ahead=15: lets all workers go on together, which a simulation at the "
            "step level does not do; valid: --level protocol, or another barrier"},
        BadSteps{"ZeroHorizon", [](StepOptions& o) { o.horizon = 0s; },
                 "horizon: 0s; valid: longer than 0, at most 200 years"},
        BadSteps{"EndlessHorizon", [](StepOptions& o) { o.horizon = Time::max(); },
                 "horizon: 9223372036854775807ns; valid: longer than 0, at most 200 years"},
        BadSteps{"NoStepTime", [](StepOptions& o) { o.step_time = Distribution{}; },
                 "step time: none takes no time; valid: a law with a mean above 0, as exp:100ms"},
        BadSteps{
            "ZeroStepTime", [](StepOptions& o) { o.step_time = Distribution{laws::Constant{0s}}; },
            "step time: const:0s takes no time; valid: a law with a mean above 0, as exp:100ms"},
        BadSteps{"Slowness",
                 [](StepOptions& o) {
                   o.slowness = {1, 2};
                 },
                 "2 slowness factors for 10 workers; valid: one for each, or none"},
        BadSteps{"NegativeSlowness",
                 [](StepOptions& o) { o.slowness = std::vector<double>(10, -1.0); },
                 "slowness factor -1; valid: a number above 0, at most 1000000"},
        BadSteps{"Absences", [](StepOptions& o) { o.absences.resize(3); },
                 "3 absences for 10 workers; valid: one for each, or none"},
        BadSteps{"AwayForEver",
                 [](StepOptions& o) {
                   o.absences.resize(10, {2s, 2s});
                 },
                 "absence of 2s in each 2s; valid: from 0 to below the period"},
        BadSteps{
            "WeightsOfACoordinator",
            [](StepOptions& o) {
              o.barrier = barrier::sampled(barrier::Bsp{}, 1, barrier::Weighting::speed);
            },
            "barrier pbsp:beta=1,draw=speed: a coordinator draws uniformly; valid: mode hybrid "
            "or peer"},
        BadSteps{"ArrivalsOfWorkersThatAreAway",
                 [](StepOptions& o) {
                   o.mode = core::Mode::peer;
                   o.barrier = barrier::sampled(barrier::Bsp{}, 1);
                   o.absences.resize(10, {1s, 2s});
                 },
                 "recheck arrival: workers that ask others which are away learn of no arrival; "
                 "valid: notify, interval:5ms, notify+interval:auto"},
        BadSteps{"NoInterval", [](StepOptions& o) { o.recheck = {.interval = 0s}; },
                 "recheck: the interval must be longer than 0"},
        BadSteps{"NoStep", [](StepOptions& o) { o.steps_max = 0; },
                 "last step: 0; valid: 1 or more"}),
    [](const auto& param) { return param.param.name; });

TEST(Memory, GrowsWithTheWorkersAndThePolicy) {
  const auto arrival = memory_estimate(options_of("pssp:s=4,beta=10", 1'000'000));
  EXPECT_GT(arrival, 50'000'000U);
  EXPECT_LT(arrival, 1'000'000'000U);
  EXPECT_GT(memory_estimate(options_of("pssp:s=4,beta=10", 3'000'000)), 2 * arrival);
  EXPECT_GT(memory_estimate(options_of("pssp:s=4,beta=10", 1'000'000, "exp:1s", "notify")),
            arrival);
}

}  // namespace
}  // namespace starling::sim
