/// Tests of SampleGate that would be too long for transcripts.
#include "starling/engine/core/worker/sample_gate.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

/// If no member of a draw has begun, the next draw is twice as large, up to all members.
TEST(SampleGate, JoinerDrawsAgainAsLongAsNoOtherWorkerHasBegun) {
  const auto members =
      std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2});
  SampleGate gate{barrier::sampled(barrier::Bsp{}, 1), barrier::Recheck::distributed(), 2, members};
  Random random{1};
  Effects out;
  Time now{};
  ASSERT_FALSE(gate.enter({now, random, out}));
  for (std::uint64_t round = 1; round <= 200; ++round) {
    const Effects queries = std::exchange(out, {});
    std::size_t asked = 0;
    for (const Effect& effect : queries) {
      const auto* send = std::get_if<Send>(&effect);
      if (send == nullptr) continue;
      ++asked;
      const MemberId other = std::get<ToMember>(send->to).id;
      ASSERT_FALSE(gate.on({now, random, out}, StepAnswer{other, round, not_begun}));
    }
    ASSERT_EQ(asked, round == 1 ? 1U : 2U) << "round " << round;
    now += std::chrono::seconds{2};
    ASSERT_FALSE(gate.on_timer({now, random, out}));
  }
}

/// Workers that have ended tell a joiner nothing as long as another one runs.
TEST(SampleGate, JoinerBeginsAtTheStepOfAWorkerThatRuns) {
  for (const bool one_runs : {true, false}) {
    const auto members =
        std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2, 3, 4, 5});
    SampleGate gate{barrier::sampled(barrier::Bsp{}, 1), barrier::Recheck::distributed(), 5,
                    members};
    Random random{1};
    Effects out;
    Time now{};
    std::size_t asked_last = 0;
    bool entered = gate.enter({now, random, out});
    for (std::uint64_t round = 1; round <= 10 && !entered; ++round) {
      asked_last = 0;
      for (const Effect& effect : std::exchange(out, {})) {
        const auto* send = std::get_if<Send>(&effect);
        if (send == nullptr) continue;
        ++asked_last;
        const MemberId other = std::get<ToMember>(send->to).id;
        const Step step = one_runs && other == 3 ? 7 : barrier::finished;
        entered = gate.on({now, random, out}, StepAnswer{other, round, step});
      }
      now += std::chrono::seconds{2};
      if (!entered) entered = gate.on_timer({now, random, out});
    }
    ASSERT_TRUE(entered);
    EXPECT_EQ(gate.entry_step(), one_runs ? Step{7} : barrier::finished);
    EXPECT_TRUE(one_runs || asked_last == 5) << "it cannot know before all have answered";
  }
}

/// Another joiner may just have learned of a worker that ran, and has ended since.
TEST(SampleGate, JoinerAsksAnotherJoinerAgainBeforeItEnds) {
  for (const Step later : {Step{99}, not_begun}) {
    const auto members =
        std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2});
    SampleGate gate{barrier::sampled(barrier::Bsp{}, 2), barrier::Recheck::distributed(), 1,
                    members};
    Random random{1};
    Effects out;
    Time now{};
    ASSERT_FALSE(gate.enter({now, random, out}));
    EXPECT_FALSE(gate.on({now, random, out}, StepAnswer{0, 1, barrier::finished}));
    EXPECT_FALSE(gate.on({now, random, out}, StepAnswer{2, 1, not_begun}));
    now += std::chrono::seconds{2};
    ASSERT_FALSE(gate.on_timer({now, random, out}));
    EXPECT_FALSE(gate.on({now, random, out}, StepAnswer{0, 2, barrier::finished}));
    EXPECT_TRUE(gate.on({now, random, out}, StepAnswer{2, 2, later}));
    EXPECT_EQ(gate.entry_step(), later == not_begun ? barrier::finished : later);
  }
}

/// Returns the workers that the gate has asked.
std::vector<MemberId> asked_in(const Effects& effects) {
  std::vector<MemberId> asked;
  for (const Effect& effect : effects)
    if (const auto* send = std::get_if<Send>(&effect);
        send != nullptr && std::holds_alternative<StepQuery>(send->message))
      asked.push_back(std::get<ToMember>(send->to).id);
  return asked;
}

/// After the first laggard has decided a draw, the tuner still learns from the other answers, but
/// not from those to the next draw.
TEST(SampleGate, LetsItsTunerSeeAllAnswersToTheFirstDraw) {
  std::vector<MemberId> all(21);
  std::iota(all.begin(), all.end(), 0U);
  SampleGate gate{{barrier::Tuned{barrier::Tuned::Measure::staleness, 3}},
                  barrier::Recheck::distributed(),
                  0,
                  std::make_shared<const std::vector<MemberId>>(all)};
  ASSERT_TRUE(gate.tuner());
  Random random{1};
  Effects out;
  Time now{};
  ASSERT_FALSE(gate.begin({now, random, out}, 50, std::chrono::milliseconds{5}));
  const std::vector<MemberId> first = asked_in(std::exchange(out, {}));
  ASSERT_EQ(first.size(), 8U);
  std::uint64_t draw = gate.counts().draws;
  for (const MemberId other : first)
    EXPECT_FALSE(
        gate.on({now, random, out}, StepAnswer{other, draw, other == first[0] ? 10U : 50U}));
  EXPECT_EQ(gate.laggard(), first[0]);
  out.clear();
  now += std::chrono::milliseconds{5};
  ASSERT_FALSE(gate.on_timer({now, random, out}));
  const std::vector<MemberId> second = asked_in(out);
  ASSERT_EQ(second.size(), 8U);
  ++draw;
  for (const MemberId other : second)
    EXPECT_EQ(gate.on({now, random, out}, StepAnswer{other, draw, 47}), other == second.back());
  EXPECT_EQ(gate.tuner()->state().mean_lag, 40.0 / 8);
  EXPECT_EQ(gate.counts().passes, 1U);
}

/// With a sample size of 0 the gate passes without a question.
TEST(SampleGate, AsksNoOneWhileItsTunerWantsNoSample) {
  SampleGate gate{{barrier::Tuned{barrier::Tuned::Measure::waiting, 0.05}},
                  barrier::Recheck::distributed(),
                  0,
                  std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2})};
  Random random{1};
  Time now{};
  std::size_t asked = 0;
  std::size_t passed_at_once = 0;
  for (Step step = 1; step <= 100; ++step) {
    Effects out;
    now += std::chrono::milliseconds{10};
    if (gate.begin({now, random, out}, step, std::chrono::milliseconds{2})) {
      ++passed_at_once;
      EXPECT_TRUE(asked_in(out).empty());
      continue;
    }
    now += std::chrono::milliseconds{5};  // a third of the step, so the target allows few of them
    for (const MemberId other : asked_in(std::exchange(out, {}))) {
      ++asked;
      (void)gate.on({now, random, out}, StepAnswer{other, step, step});  // one attempt a step
    }
  }
  EXPECT_GT(passed_at_once, 60U);
  EXPECT_GT(asked, 3U);
}

/// The answer of a worker that has left does not count as one of those that remain.
TEST(SampleGate, JoinerAsksAgainIfAWorkerThatHasAnsweredLeaves) {
  std::vector<MemberId> members{0, 1, 2, 9};
  const auto list = [&] { return std::make_shared<const std::vector<MemberId>>(members); };
  SampleGate gate{barrier::sampled(barrier::Ssp{4}, 2), barrier::Recheck::distributed(), 9, list()};
  Random random{1};
  Effects out;
  const Time now{};
  ASSERT_FALSE(gate.enter({now, random, out}));
  const auto asked = asked_in(std::exchange(out, {}));
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_FALSE(gate.on({now, random, out}, StepAnswer{asked[0], 1, barrier::finished}));
  std::erase(members, asked[0]);
  EXPECT_FALSE(gate.on_members({now, random, out}, list(), {asked[0]}));
  EXPECT_FALSE(gate.on({now, random, out}, StepAnswer{asked[1], 1, barrier::finished}))
      << "the third worker was not asked";
  EXPECT_EQ(asked_in(out).size(), 2U) << "both that remain are asked";
}

/// A quorum names no laggard, so only the interval would make the worker draw again.
TEST(SampleGate, LetsAWorkerPassThatIsAloneNow) {
  const auto list = [](std::vector<MemberId> ids) {
    return std::make_shared<const std::vector<MemberId>>(std::move(ids));
  };
  SampleGate gate{barrier::sampled(barrier::Quorum{0.9}, 2), {.interval = 1h}, 0, list({0, 1, 2})};
  Random random{1};
  Effects out;
  const Time now{};
  ASSERT_FALSE(gate.begin({now, random, out}, 5, 1ms));
  ASSERT_FALSE(gate.on({now, random, out}, StepAnswer{1, 1, 3}));
  ASSERT_FALSE(gate.on({now, random, out}, StepAnswer{2, 1, 3}));
  EXPECT_TRUE(gate.on_members({now, random, out}, list({0}), {1, 2}));
}

}  // namespace
}  // namespace starling::core
