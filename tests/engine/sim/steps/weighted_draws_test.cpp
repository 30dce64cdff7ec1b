/// Tests weighted draws, and workers that are away, in the simulation of steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "starling/engine/sim/steps/step_draws.hpp"
#include "tests/barrier/successive_draws.hpp"
#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* distributed = "notify+interval:auto";

/// The last tenth of the workers is away for half of the time.
StepOptions with_absences(const std::string& barrier, std::size_t workers, Absence absence) {
  StepOptions options = options_of(barrier, workers, "exp:100ms", distributed);
  options.absences.resize(workers);
  std::fill(options.absences.end() - static_cast<std::ptrdiff_t>(workers / 10),
            options.absences.end(), absence);
  return options;
}

// --- absences -----------------------------------------------------------------------------------

/// Compares with a walk through time in steps of 1 ns.
TEST(Absences, AreThoseOfAWalkThroughTime) {
  for (const Absence absence : {Absence{1ns, 2ns}, Absence{3ns, 10ns}, Absence{9ns, 10ns}})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Absences absences{{absence}, seed};
      std::vector<bool> is_away;
      for (Time at = 0ns; at < 500ns; at += 1ns) is_away.push_back(absences.is_away(0, at));
      EXPECT_EQ(std::count(is_away.begin(), is_away.begin() + absence.period.count() * 20, true),
                absence.away.count() * 20);
      const auto walk_to_available = [&](std::size_t at) {
        while (is_away[at]) ++at;
        return at;
      };
      for (std::size_t from = 0; from < 20; ++from) {
        ASSERT_EQ(absences.available_at(0, Time{static_cast<Time::rep>(from)}).count(),
                  walk_to_available(from));
        for (std::size_t work = 0; work < 20; ++work) {
          std::size_t at = walk_to_available(from);
          for (std::size_t done = 0; done < work; ++done) at = walk_to_available(at + 1);
          ASSERT_EQ(absences
                        .time_to_work(0, Time{static_cast<Time::rep>(from)},
                                      Time{static_cast<Time::rep>(work)})
                        .count(),
                    at - from)
              << "away " << absence.away.count() << ", work " << work << " from " << from;
        }
      }
    }
}

TEST(Absences, BeginAtDifferentMomentsOfTheSeed) {
  const std::vector<Absence> half(100, {1s, 2s});
  const Absences absences{half, 1};
  const Absences again{half, 1};
  const Absences other{half, 2};
  std::size_t away = 0;
  std::size_t differ = 0;
  for (MemberId worker = 0; worker < 100; ++worker) {
    EXPECT_EQ(absences.is_away(worker, 0s), again.is_away(worker, 0s));
    away += absences.is_away(worker, 0s) ? 1 : 0;
    differ += absences.is_away(worker, 0s) != other.is_away(worker, 0s) ? 1 : 0;
  }
  EXPECT_GT(away, 25U);
  EXPECT_LT(away, 75U);
  EXPECT_GT(differ, 25U);
}

TEST(Absences, DoNotOverflow) {
  const Absences absences{{{10s - 1ns, 10s}}, 1};
  constexpr Time year = std::chrono::hours{24 * 365};
  EXPECT_EQ(absences.time_to_work(0, 200 * year, year), 90 * year);
}

/// Without a barrier, a worker that is away for a share of the time makes so many steps fewer.
TEST(Away, HalvesTheStepsOfAWorkerThatNeverWaits) {
  StepOptions options = with_absences("asp", 20, {500ms, 1s});
  options.horizon = 400s;
  const StepResult result = simulate(options);
  for (MemberId worker = 0; worker < 20; ++worker)
    EXPECT_NEAR(static_cast<double>(result.steps[worker]), worker < 18 ? 4000 : 2000,
                worker < 18 ? 5 * 63.2 : 5 * 44.7)
        << worker;
}

/// A coordinator knows the steps of workers that are away: nobody waits for an answer, but under
/// bsp all wait until the worker is back.
TEST(Away, DelaysAllUnderBsp) {
  StepOptions options = options_of("bsp", 4, "const:1s");
  options.absences = {{}, {}, {}, {1s, 2s}};
  options.horizon = 60s;
  const StepResult result = simulate(options);
  EXPECT_NEAR(static_cast<double>(result.steps[0]), 30, 1);
}

/// A worker that draws one that is away waits for its answer for up to a second.
TEST(Away, MakesOthersWaitForAnswers) {
  StepOptions options = with_absences("pssp:s=4,beta=2", 30, {5s, 10s});
  const double with = simulate(options).waiting_share;
  options.absences.clear();
  EXPECT_GT(with, simulate(options).waiting_share + 0.1);
}

// --- weights ------------------------------------------------------------------------------------

/// As long as all answer, all have weight 1.
TEST(Weighted, ByAvailabilityEqualsUniformDrawsIfAllAnswer) {
  for (const char* barrier : {"pbsp:beta=3", "pssp:s=2,beta=5", "pquorum:q=0.6,beta=4"}) {
    StepOptions uniform = options_of(barrier, 50, "exp:100ms", distributed);
    uniform.sampling = Sampling::plain;
    StepOptions weighted = uniform;
    weighted.barrier.weighting = barrier::Weighting::availability;
    EXPECT_EQ(simulate(weighted), simulate(uniform)) << barrier;
  }
}

TEST(Weighted, RepeatsWithTheSameSeed) {
  for (const char* barrier : {"pssp:s=4,beta=3,draw=availability", "pbsp:beta=3,draw=speed"}) {
    StepOptions options = with_absences(barrier, 40, {2s, 4s});
    const StepResult first = simulate(options);
    EXPECT_EQ(simulate(options), first) << barrier;
    options.seed = 2;
    EXPECT_NE(simulate(options), first) << barrier;
  }
}

/// Workers that answer seldom are drawn less often: the others wait less, and make more steps.
TEST(Weighted, ByAvailabilityWaitsLessForWorkersThatAreAway) {
  const auto seeds = sanitized ? 2U : 8U;
  const auto updates = [](const StepResult& r) { return r.updates; };
  const auto waiting = [](const StepResult& r) { return r.waiting_share; };
  const auto uniform = runs(with_absences("pssp:s=4,beta=2", 30, {5s, 10s}), seeds);
  const auto weighted =
      runs(with_absences("pssp:s=4,beta=2,draw=availability", 30, {5s, 10s}), seeds);
  EXPECT_GT(mean(figures(weighted, updates)), 1.02 * mean(figures(uniform, updates)));
  EXPECT_LT(mean(figures(weighted, waiting)), mean(figures(uniform, waiting)));
}

TEST(Weighted, BySpeedWaitsLessForSlowWorkers) {
  const auto seeds = sanitized ? 2U : 8U;
  const auto waiting = [](const StepResult& r) { return r.waiting_share; };
  StepOptions options = options_of("pbsp:beta=2", 30, "exp:100ms", distributed);
  options.slowness.resize(30, 1);
  std::fill(options.slowness.end() - 6, options.slowness.end(), 4);
  const auto uniform = runs(options, seeds);
  options.barrier.weighting = barrier::Weighting::speed;
  const auto weighted = runs(options, seeds);
  EXPECT_LT(mean(figures(weighted, waiting)), 0.95 * mean(figures(uniform, waiting)));
}

/// Worker 0 draws while the others make steps at different speeds, or are away for different shares
/// of the time. The weights at each draw give the exact probability that it passes.
TEST(Weighted, PassesWithTheExactProbability) {
  constexpr MemberId others = 6;
  for (const auto weighting : {barrier::Weighting::availability, barrier::Weighting::speed}) {
    StepOptions options = options_of("pssp:s=4,beta=2", others + 1, "exp:100ms", distributed);
    options.barrier.weighting = weighting;
    options.absences.resize(others + 1);
    if (weighting == barrier::Weighting::availability)
      for (MemberId id = 1; id <= others; ++id) options.absences[id] = {id * 1s, 7s};
    StepDraws draws{options, true};
    Random random{1};
    Random step_random{2};
    HitCount passed;
    std::vector<Step> steps(others + 1);
    double lowest = 10;
    Time now{};
    for (int i = 0; i < 100'000; ++i) {
      now += 300ms;
      steps[0] = 10 + static_cast<Step>(i);
      std::uint32_t on_pace = 0;
      for (MemberId id = 1; id <= others; ++id) {
        const bool is_fast = weighting == barrier::Weighting::availability || id > 3;
        steps[id] = is_fast ? static_cast<Step>(i) + step_random.below(10)
                            : std::max(steps[id], static_cast<Step>(i) * id / others);
        const bool answers = draws.absences().available_at(id, now) - now < core::query_timeout;
        if (answers && steps[id] + 4 >= steps[0]) on_pace |= 1U << (id - 1);
      }
      std::vector<double> weights(others, 1);
      for (const auto& [number, weight] : draws.weights_of(0, steps, now)) weights[number] = weight;
      const bool passes = draws.decide(0, steps, now, random).pass;
      lowest = std::min(lowest, std::ranges::min(weights));
      passed.add(passes, probability_within(set_probabilities(weights, 2), on_pace));
    }
    EXPECT_LT(std::abs(passed.deviations()), 5) << barrier::print(weighting);
    EXPECT_LT(lowest, 0.4) << "the weights differ";
  }
}

TEST(Weighted, NeedsMemoryForEachWorkerUpToABound) {
  const auto bytes = [](std::size_t workers, const char* barrier) {
    return memory_estimate(options_of(barrier, workers, "exp:100ms", distributed));
  };
  const std::uint64_t more = bytes(10'000, "pbsp:beta=2,draw=speed") - bytes(10'000, "pbsp:beta=2");
  EXPECT_GT(more, 10'000U * core::DrawWeights::remembered_max * 40);
  EXPECT_LT(more, 10'000U * core::DrawWeights::remembered_max * 140);
}

}  // namespace
}  // namespace starling::sim
