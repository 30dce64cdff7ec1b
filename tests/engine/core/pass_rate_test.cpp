/// Tests that, while no step changes, the share of draws that pass is C(on pace, beta) / C(others,
/// beta).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "starling/barrier/sampling.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/core/worker/sample_gate.hpp"
#include "tests/barrier/statistics.hpp"
#include "tests/engine/core/initial_workers.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;
using barrier::Barrier;
using barrier::Recheck;

/// The step of workers that stay on pace throughout; laggards are at step 0.
constexpr Step far_ahead = 1'000'000'000;
constexpr int draw_count = 100'000;

/// The asking worker has `others` other workers, of which `on_pace` are not more than `staleness`
/// behind.
struct JobSteps {
  Step staleness;
  std::uint32_t beta;
  std::uint32_t on_pace;
  std::uint32_t others;
};

Barrier barrier_of(const JobSteps& steps) {
  return barrier::sampled(barrier::Ssp{steps.staleness}, steps.beta);
}

class PassRate : public testing::TestWithParam<JobSteps> {
 protected:
  /// Worker 0 asks. The workers 1 to on_pace are far ahead, and the others are at step 0.
  [[nodiscard]] static Step step_of(MemberId worker) {
    return worker <= GetParam().on_pace ? far_ahead : 0;
  }
  static void expect_rate(std::uint64_t passes, std::uint64_t draws) {
    const auto [staleness, beta, on_pace, others] = GetParam();
    const double expected = barrier::pass_probability(on_pace, others, beta);
    EXPECT_LT(std::abs(deviations(passes, draws, expected)), 5) << passes << " of " << draws;
  }
};

TEST_P(PassRate, CoordinatorPassesAsOftenAsExpected) {
  std::vector<Step> initial_steps{GetParam().staleness};
  for (MemberId worker = 1; worker <= GetParam().others; ++worker)
    initial_steps.push_back(step_of(worker));
  Coordinator coordinator{{.barrier = barrier_of(GetParam()), .recheck = {.interval = 1us}}};
  add_initial_workers(coordinator, initial_steps);
  Random random{1};
  Effects out;
  Time now{};
  Step own = initial_steps[0];
  bool waiting = false;
  while (coordinator.draws() < draw_count) {
    out.clear();
    now += 1us;
    const Context context{now, random, out};
    waiting ? coordinator.on_timer(context) : coordinator.on(context, Arrived{0, ++own});
    waiting = std::ranges::none_of(out, [](const Effect& effect) {
      const auto* send = std::get_if<Send>(&effect);
      return send != nullptr && std::holds_alternative<Proceed>(send->message);
    });
  }
  expect_rate(coordinator.passes(), coordinator.draws());
}

TEST_P(PassRate, WorkerPassesAsOftenAsExpectedAndAsksUniformly) {
  const auto [staleness, beta, on_pace, others] = GetParam();
  std::vector<MemberId> everyone(others + 1);
  std::iota(everyone.begin(), everyone.end(), 0U);
  SampleGate gate{barrier_of(GetParam()),
                  {.interval = 1us},
                  0,
                  std::make_shared<const std::vector<MemberId>>(everyone)};
  Random random{2};
  Time now{};
  std::vector<std::uint64_t> asked(others);
  bool passed = true;
  while (gate.counts().draws < draw_count) {
    Effects queries;
    now += 1us;
    const Context context{now, random, queries};
    passed = passed ? gate.begin(context, staleness + 1, 1ms) : gate.on_timer(context);
    for (const Effect& effect : queries) {
      const auto* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      const MemberId other = std::get<ToMember>(send->to).id;
      ++asked[other - 1];
      Effects out;
      passed = gate.on({now, random, out}, StepAnswer{other, gate.counts().draws, step_of(other)});
    }
  }
  expect_rate(gate.counts().passes, gate.counts().draws);
  // The workers of one draw differ, so the counts may be more even than those of independent draws:
  // there is no lower bound.
  EXPECT_LT(uniformity(asked), 5);
}

/// The worker itself and workers that have left are never drawn, all others equally often.
TEST(SampleGate, DrawsEveryPairOfLiveOthersEquallyOften) {
  const auto members = [](std::vector<MemberId> ids) {
    return std::make_shared<const std::vector<MemberId>>(std::move(ids));
  };
  SampleGate gate{
      barrier::sampled(barrier::Bsp{}, 2), {.notify = true}, 5, members({0, 1, 2, 3, 4, 5, 6})};
  Random random{4};
  Effects out;
  EXPECT_FALSE(gate.on_members({0us, random, out}, members({9, 1, 8, 3, 5, 7, 6, 2, 4}), {0}));
  EXPECT_FALSE(gate.on_members({0us, random, out}, members({1, 8, 3, 5, 7, 6, 2}), {4, 9}));
  std::map<std::pair<MemberId, MemberId>, std::uint64_t> drawn;
  for (int i = 0; i < draw_count; ++i) {
    out.clear();
    EXPECT_FALSE(gate.begin({0us, random, out}, 1, 1ms));
    std::vector<MemberId> asked;
    for (const Effect& effect : out)
      if (const auto* send = std::get_if<Send>(&effect))
        asked.push_back(std::get<ToMember>(send->to).id);
    ASSERT_EQ(asked.size(), 2U);
    ++drawn[std::minmax(asked[0], asked[1])];
  }
  std::vector<std::uint64_t> counts;
  for (const auto& [pair, count] : drawn) {
    for (const MemberId gone : {0U, 4U, 5U, 9U})
      EXPECT_FALSE(pair.first == gone || pair.second == gone) << gone;
    counts.push_back(count);
  }
  EXPECT_EQ(counts.size(), 15U) << "pairs of the 6 others";
  EXPECT_LT(std::abs(uniformity(counts)), 5);
}

/// Each worker has a different step, so the steps that a user's predicate receives show which
/// workers were drawn.
TEST(Coordinator, DrawsEveryPairOfOthersEquallyOften) {
  constexpr std::size_t workers = 7;
  std::map<std::pair<Step, Step>, std::uint64_t> drawn;
  const auto recorder = barrier::Predicate::make("recorder", [&](Step, std::span<const Step> seen) {
    ++drawn[std::minmax(seen[0], seen[1])];
    return false;
  });
  std::vector<Step> initial_steps(workers);
  std::iota(initial_steps.begin(), initial_steps.end(), Step{0});
  Coordinator coordinator{{.barrier = barrier::sampled(recorder, 2), .recheck = {.interval = 1us}}};
  add_initial_workers(coordinator, initial_steps);
  Random random{3};
  Effects out;
  coordinator.on({0us, random, out}, Arrived{3, 100});
  for (Time now = 1us; coordinator.draws() < draw_count; now += 1us)
    coordinator.on_timer({now, random, out});
  std::vector<std::uint64_t> counts;
  counts.reserve(drawn.size());
  for (const auto& [pair, count] : drawn) counts.push_back(count);
  EXPECT_EQ(counts.size(), 15U) << "pairs of the 6 others";
  EXPECT_FALSE(drawn.contains({3, 3}));
  EXPECT_LT(std::abs(uniformity(counts)), 5);
}

INSTANTIATE_TEST_SUITE_P(Steps, PassRate,
                         testing::Values(JobSteps{0, 2, 5, 9}, JobSteps{4, 1, 5, 9},
                                         JobSteps{4, 10, 90, 99}, JobSteps{4, 3, 20, 99},
                                         JobSteps{2, 33, 97, 99}, JobSteps{0, 2, 2, 2},
                                         JobSteps{0, 2, 1, 2}));

}  // namespace
}  // namespace starling::core
