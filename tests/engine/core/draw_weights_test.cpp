/// Tests what a worker remembers of others, and that its draws have exactly the weights that
/// follow.
#include "starling/engine/core/worker/draw_weights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "starling/engine/core/worker/sample_gate.hpp"
#include "tests/barrier/statistics.hpp"
#include "tests/barrier/successive_draws.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;
using barrier::Weighting;

/// Asks the peer at `now`, and lets it answer `after` that.
void ask(DrawWeights& weights, MemberId peer, Time now, Time after, Step step = 0) {
  weights.on_question(peer, now);
  weights.on_answer(peer, step, now + after);
}

float weight_in(const DrawWeights& weights, MemberId peer) {
  return static_cast<float>(weights.weight_of(peer));
}

TEST(Availability, FollowsTheLastOutcomes) {
  DrawWeights weights{Weighting::availability};
  const std::vector<MemberId> workers{1, 2, 3};
  ask(weights, 2, 0s, 999ms);
  EXPECT_EQ(weights.weight_of(2), 1);
  ask(weights, 2, 2s, 1s);
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 1.0F / 2);
  weights.on_question(2, 5s);  // no answer
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 1.0F / 2);
  EXPECT_EQ(weights.weights(workers, 0, 6s - 1ns).front().weight, 0.5);
  EXPECT_EQ(weights.weights(workers, 0, 6s).front().number, 0U);
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 1.0F / 3);
  ask(weights, 2, 7s, 0s);
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 2.0F / 4);
  for (int i = 0; i < 4; ++i) ask(weights, 2, 10s + i * 1s, 0s);
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 6.0F / 8);
  ask(weights, 2, 20s, 1s);
  EXPECT_FLOAT_EQ(weight_in(weights, 2), 6.0F / 8 * 7 / 8) << "the mean of the last outcomes";
}

TEST(Availability, IsNeverLessThanASixteenth) {
  DrawWeights weights{Weighting::availability};
  for (int i = 0; i < 100; ++i) ask(weights, 4, i * 2s, 2s);
  EXPECT_EQ(weights.weight_of(4), 1.0 / 16);
}

/// A worker that answers always is not remembered, so memory and time grow with the others only.
TEST(Availability, ForgetsWorkersThatAnswerAgain) {
  DrawWeights weights{Weighting::availability};
  for (MemberId peer = 0; peer < 1000; ++peer) ask(weights, peer, 0s, 1ms);
  EXPECT_EQ(weights.remembered(), 0U);
  ask(weights, 7, 0s, 2s);
  EXPECT_EQ(weights.remembered(), 1U);
  int answers = 0;
  for (; weights.remembered() > 0; ++answers) ask(weights, 7, answers * 1s, 1ms);
  EXPECT_EQ(answers, 6 + 16);  // 7/8 after six answers, and then (7/8)^n / 8 <= 1/64
  EXPECT_EQ(weights.weight_of(7), 1);
}

TEST(Availability, CountsOneOpenQuestionToAWorkerOnce) {
  DrawWeights weights{Weighting::availability};
  for (Time now = 0s; now < 900ms; now += 100ms) weights.on_question(3, now);
  EXPECT_EQ(weights.open_questions().size(), 1U);
  weights.on_answer(3, 0, 1s);  // too late for the first question
  EXPECT_DOUBLE_EQ(weights.weight_of(3), 0.5);
  weights.on_answer(3, 0, 1s);  // no question is open
  EXPECT_DOUBLE_EQ(weights.weight_of(3), 0.5);
}

TEST(Speed, IsTheRatioToTheMeanSpeed) {
  DrawWeights weights{Weighting::speed};
  // Two workers make 10 steps a second and two make 2, asked twice a second.
  for (int i = 0; i < 100; ++i)
    for (MemberId peer = 0; peer < 4; ++peer)
      ask(weights, peer, i * 500ms, 1ms, static_cast<Step>(peer < 2 ? 5 * i : i));
  // Each record holds 8 intervals of half a second, with 40 or 8 steps; the mean is 24.
  for (MemberId peer = 0; peer < 4; ++peer)
    EXPECT_NEAR(weights.weight_of(peer), ((peer < 2 ? 40 : 8) + 2) / 26.0, 1e-4) << peer;
  EXPECT_EQ(weights.weight_of(9), 1);
}

TEST(Speed, HasBounds) {
  DrawWeights weights{Weighting::speed};
  for (int i = 0; i < 100; ++i) {
    ask(weights, 0, i * 1s, 1ms, 7);  // stands still
    ask(weights, 1, i * 1s, 1ms, static_cast<Step>(1000 * i));
    for (MemberId peer = 2; peer < 20; ++peer)
      ask(weights, peer, i * 1s, 1ms, static_cast<Step>(i));
  }
  EXPECT_EQ(weights.weight_of(0), 1.0 / 16);
  EXPECT_EQ(weights.weight_of(1), 4);
}

TEST(Speed, IgnoresWorkersThatHaveEndedOrNotBegunAndStepsThatGoBack) {
  DrawWeights weights{Weighting::speed};
  ask(weights, 1, 0s, 1ms, barrier::finished);
  ask(weights, 2, 0s, 1ms, not_begun);
  EXPECT_EQ(weights.remembered(), 0U);
  for (int i = 0; i < 10; ++i) {
    ask(weights, 3, i * 1s, 1ms, static_cast<Step>(i));
    ask(weights, 4, i * 1s, 1ms, static_cast<Step>(i));
  }
  const double before = weights.weight_of(3);
  ask(weights, 3, 20s, 1ms, 2);
  EXPECT_EQ(weights.weight_of(3), before);
}

TEST(DrawWeights, RememberABoundedNumber) {
  for (const Weighting weighting : {Weighting::availability, Weighting::speed}) {
    DrawWeights weights{weighting};
    const Time after = weighting == Weighting::availability ? 2s : 1ms;
    constexpr MemberId peers = 3 * DrawWeights::remembered_max;
    for (MemberId peer = 0; peer < peers; ++peer) ask(weights, peer, peer * 10s, after);
    EXPECT_EQ(weights.remembered(), DrawWeights::remembered_max);
    // The last ones remain.
    std::vector<MemberId> workers(peers);
    std::iota(workers.begin(), workers.end(), 0U);
    EXPECT_EQ(weights.weights(workers, peers - 1, peers * 10s).front().number,
              peers - DrawWeights::remembered_max);
    for (MemberId peer = 0; peer < peers; ++peer) weights.on_question(peer, peers * 10s);
    EXPECT_EQ(weights.open_questions().size(), DrawWeights::open_max);
  }
}

TEST(DrawWeights, ForgetWorkersThatHaveChanged) {
  DrawWeights weights{Weighting::availability};
  ask(weights, 2, 0s, 2s);
  ask(weights, 5, 0s, 2s);
  weights.on_question(2, 9s);
  weights.forget(std::vector<MemberId>{1, 2});
  EXPECT_EQ(weights.weight_of(2), 1);
  EXPECT_LT(weights.weight_of(5), 1);
  EXPECT_TRUE(weights.open_questions().empty());
}

/// The numbers are positions among the others: the worker itself and workers that have left have
/// none.
TEST(DrawWeights, AreNumberedByPositionAmongTheOthers) {
  DrawWeights weights{Weighting::availability};
  for (const MemberId peer : {2U, 4U, 6U, 8U}) ask(weights, peer, 0s, 2s);
  const std::vector<MemberId> workers{1, 2, 4, 5, 8};
  const auto result = weights.weights(workers, 2, 9s);
  ASSERT_EQ(result.size(), 2U);
  EXPECT_EQ(result[0], (barrier::Weighted{1, 0.5}));
  EXPECT_EQ(result[1], (barrier::Weighted{3, 0.5}));
  EXPECT_TRUE(barrier::check_weights(4, result));
}

// --- the draws of a gate ------------------------------------------------------------------------

/// Worker 0 asks the workers 1 to `others`.
class WeightedGate : public testing::TestWithParam<Weighting> {
 protected:
  static constexpr MemberId others = 6;
  static constexpr std::size_t beta = 2;
  static constexpr int draw_count = 100'000;

  [[nodiscard]] static std::shared_ptr<const std::vector<MemberId>> everyone() {
    std::vector<MemberId> ids(others + 1);
    std::iota(ids.begin(), ids.end(), 0U);
    return std::make_shared<const std::vector<MemberId>>(ids);
  }

  [[nodiscard]] double weight_of(MemberId peer) const { return gate.weights()->weight_of(peer); }

  /// Returns the workers that the queries among the effects ask.
  static std::vector<MemberId> asked_in(const Effects& effects) {
    std::vector<MemberId> asked;
    for (const Effect& effect : effects) {
      const auto* send = std::get_if<Send>(&effect);
      if (send != nullptr && std::holds_alternative<StepQuery>(send->message))
        asked.push_back(std::get<ToMember>(send->to).id);
    }
    return asked;
  }

  SampleGate gate{
      barrier::sampled(barrier::Ssp{4}, beta, GetParam()), {.interval = 1ms}, 0, everyone()};
};

/// A worker answers with a probability of its own, and makes steps at a speed of its own, so the
/// weights change with each draw. For each draw, the weights at that time give the exact
/// probabilities that a worker is drawn, and that the draw passes.
TEST_P(WeightedGate, DrawsAndPassesWithTheExactProbabilities) {
  Random random{1};
  Random answers{2};
  std::vector<HitCount> drawn(others + 1);
  HitCount passed;
  std::vector<double> lowest(others + 1, 10);
  Time now{};
  for (int i = 0; i < draw_count; ++i) {
    now += 100ms;
    const Step own = 10 + static_cast<Step>(i);
    Effects out;
    ASSERT_FALSE(gate.begin({now, random, out}, own, 1ms));
    const auto asked = asked_in(out);
    std::vector<double> weights;
    for (MemberId peer = 1; peer <= others; ++peer) {
      weights.push_back(weight_of(peer));
      lowest[peer] = std::min(lowest[peer], weights.back());
    }
    const auto sets = set_probabilities(weights, beta);
    // Worker p answers with a chance of p/6; the slower ones may be laggards.
    std::uint32_t would_pass = 0;
    std::vector<Step> steps(others + 1);
    std::vector<bool> is_there(others + 1);
    for (MemberId peer = 1; peer <= others; ++peer) {
      is_there[peer] = GetParam() == Weighting::speed || answers.below(others) < peer;
      steps[peer] = static_cast<Step>(i) * std::min(2 * peer, others) / others + answers.below(10);
      if (GetParam() == Weighting::availability) steps[peer] = own - answers.below(8);
      if (is_there[peer] && steps[peer] + 4 >= own) would_pass |= 1U << (peer - 1);
    }
    bool passes = false;
    bool is_refused = false;
    for (const MemberId peer : asked) {
      out.clear();
      if (!is_there[peer]) continue;
      passes = gate.on({now, random, out}, StepAnswer{peer, gate.counts().draws, steps[peer]});
      is_refused = is_refused || gate.laggard().has_value();
    }
    const bool all_there = std::ranges::all_of(asked, [&](MemberId p) { return is_there[p]; });
    if (!all_there && !is_refused) {
      now += query_timeout;
      EXPECT_FALSE(gate.on_timer({now, random, out}));
    }
    for (MemberId peer = 1; peer <= others; ++peer)
      drawn[peer].add(std::ranges::find(asked, peer) != asked.end(),
                      inclusion_probability(sets, peer - 1));
    passed.add(passes, probability_within(sets, would_pass));
  }
  for (MemberId peer = 1; peer <= others; ++peer)
    EXPECT_LT(std::abs(drawn[peer].deviations()), 5) << "worker " << peer;
  EXPECT_LT(std::abs(passed.deviations()), 5);
  EXPECT_LT(lowest[1], 0.5);
  EXPECT_GE(lowest[1], DrawWeights::least);
}

/// A worker that never answers, or never makes a step, is still drawn: each draw includes it with
/// the chance that its least weight gives against the largest of all others.
TEST_P(WeightedGate, LeavesNoWorkerOut) {
  Random random{3};
  Time now{};
  std::uint64_t times_drawn = 0;
  const double most = GetParam() == Weighting::speed ? DrawWeights::most : 1;
  std::vector<double> extreme(others, most);
  extreme[0] = DrawWeights::least;
  const double least_chance = inclusion_probability(set_probabilities(extreme, beta), 0);
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    now += 2s;
    Effects out;
    ASSERT_FALSE(gate.begin({now, random, out}, 10 + static_cast<Step>(i), 1ms));
    for (const MemberId peer : asked_in(out)) {
      if (peer == 1) ++times_drawn;
      Effects ignored;
      if (peer != 1)
        (void)gate.on({now, random, ignored},
                      StepAnswer{peer, gate.counts().draws, 10 + static_cast<Step>(i)});
      else if (GetParam() == Weighting::speed)
        (void)gate.on({now, random, ignored}, StepAnswer{peer, gate.counts().draws, 0});
    }
  }
  EXPECT_EQ(weight_of(1), DrawWeights::least);
  EXPECT_GT(deviations(times_drawn, draws, least_chance), -5) << times_drawn;
  EXPECT_LT(deviations(times_drawn, draws, 2.0 / others), -5) << "fewer than under uniform draws";
}

TEST_P(WeightedGate, BeginsWithUniformDraws) {
  SampleGate uniform{barrier::sampled(barrier::Ssp{4}, beta), {.interval = 1ms}, 0, everyone()};
  Random one{4};
  Random other{4};
  Effects weighted_effects;
  Effects uniform_effects;
  EXPECT_FALSE(gate.begin({0s, one, weighted_effects}, 10, 1ms));
  EXPECT_FALSE(uniform.begin({0s, other, uniform_effects}, 10, 1ms));
  EXPECT_EQ(asked_in(weighted_effects), asked_in(uniform_effects));
  EXPECT_EQ(uniform.weights(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(By, WeightedGate,
                         testing::Values(Weighting::availability, Weighting::speed),
                         [](const auto& param) { return barrier::print(param.param); });

}  // namespace
}  // namespace starling::core
