#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/tuner.hpp"
#include "starling/base/random.hpp"

namespace starling::barrier {
namespace {

using namespace std::chrono_literals;

constexpr Tuned waiting_5{Tuned::Measure::waiting, 0.05};
constexpr Tuned staleness_3{Tuned::Measure::staleness, 3};
constexpr Tuned by_progress{Tuned::Measure::progress};

std::string parse_error(const std::string& text) {
  const auto parsed = parse(text);
  return parsed ? "read as " + print(*parsed) : parsed.error().message;
}

TEST(Tuned, IsReadAndPrinted) {
  EXPECT_EQ(*parse("tuned:waiting=5%"), Barrier{waiting_5});
  EXPECT_EQ(*parse("tuned:staleness=3"), Barrier{staleness_3});
  EXPECT_EQ(*parse("tuned:progress"), Barrier{by_progress});
  for (const char* text : {"tuned:waiting=7%", "tuned:waiting=0.1%", "tuned:waiting=33.3%",
                           "tuned:staleness=2.5", "tuned:staleness=32", "tuned:progress"})
    EXPECT_EQ(print(*parse(text)), text);
}

TEST(Tuned, RefusesBadTargets) {
  const std::string prefix = "barrier: tuned: ";
  const std::string share = ": valid: above 0% and below 100%, as in waiting=5%";
  for (const char* bad : {"0%", "120%", "100%", "-5%", "5", "x%", "%", "nan%"})
    EXPECT_EQ(parse_error("tuned:waiting=" + std::string{bad}), prefix + "waiting=" + bad + share);
  const std::string steps = ": valid: a number of steps above 0, to 32, as in staleness=3";
  for (const char* bad : {"-1", "0", "33", "x", "3%"})
    EXPECT_EQ(parse_error("tuned:staleness=" + std::string{bad}),
              prefix + "staleness=" + bad + steps);
  const std::string examples = "; valid: tuned:waiting=5%, tuned:staleness=3 or tuned:progress";
  EXPECT_EQ(parse_error("tuned"), prefix + "give a target" + examples);
  const std::string both = " are both given, but s and beta can meet one target only" + examples;
  EXPECT_EQ(parse_error("tuned:waiting=5%,staleness=3"), prefix + "waiting and staleness" + both);
  EXPECT_EQ(parse_error("tuned:progress,staleness=3"), prefix + "staleness and progress" + both);
  EXPECT_EQ(parse_error("tuned:waiting=5%,progress"), prefix + "waiting and progress" + both);
  EXPECT_EQ(parse_error("tuned:progress=3"),
            prefix + "progress=3 must be 'progress' without a value, or be left out");
  EXPECT_EQ(parse_error("tuned:progres"), prefix + "give a target" + examples);
  EXPECT_NE(parse_error("tuned:waiting=5%,s=3").find("unknown option 's'"), std::string::npos)
      << parse_error("tuned:waiting=5%,s=3");
  EXPECT_FALSE(check({Tuned{Tuned::Measure::waiting, 1.2}}, 8));
  EXPECT_FALSE(check({Tuned{Tuned::Measure::staleness, -1}}, 8));
  EXPECT_TRUE(check({staleness_3}, 1)) << "a lone worker passes";
}

TEST(Tuned, ChoosesItsSamplesItself) {
  EXPECT_EQ(parse_error("ptuned:beta=2"),
            "barrier: 'ptuned': tuned has no sampled form, for it chooses its samples itself; "
            "valid: tuned:waiting=5%");
  EXPECT_FALSE(check(sampled(waiting_5, 2), 8));
  EXPECT_FALSE(can_be_sampled(waiting_5));
  EXPECT_TRUE(is_sampled({waiting_5}));
  EXPECT_FALSE(needs_every_step({waiting_5}));
}

TEST(Tuned, PromisesItsLargestStaleness) {
  EXPECT_EQ(promised_floor({waiting_5}, 100), 100U);
  EXPECT_EQ(promised_floor({staleness_3}, 100), 100 - Tuned::staleness_max);
  EXPECT_EQ(seen_workers({staleness_3}, 1000), Tuned::sample_max);
  EXPECT_EQ(seen_workers({staleness_3}, 7), 7U);
  EXPECT_EQ(promised_floor({by_progress}, 100), 100U);
  for (const Tuned& rule : {waiting_5, staleness_3, by_progress}) {
    EXPECT_EQ(spread_bound({rule}), std::nullopt) << "a worker that no one draws delays no one";
    EXPECT_FALSE(is_bsp({rule}));
  }
}

/// Under any observations, however odd, s and beta stay in their limits.
TEST(Tuner, KeepsItsLimits) {
  for (const Tuned& rule : {waiting_5, staleness_3, by_progress}) {
    Random random{1};
    Tuner tuner{rule};
    Tuner::Time now{};
    Step step = 0;
    for (int i = 0; i < 20'000; ++i) {
      // The lags and waits are all small, or all large, for 1000 steps each.
      const bool is_large = i / 1000 % 2 == 1;
      now += Tuner::Time{static_cast<std::int64_t>(random.exponential(is_large ? 1e3 : 1e8))};
      tuner.arrive(now, step += 1000, Descent{random.normal() * 1e9, random.normal() / 1e9});
      tuner.begin_draw();
      for (std::size_t k = 0; k < *tuner.barrier().sample; ++k)
        tuner.see(is_large ? random.below(step) : step);
      now += Tuner::Time{static_cast<std::int64_t>(random.exponential(is_large ? 1e10 : 1))};
      tuner.pass(now);
      const auto* ssp = std::get_if<Ssp>(&tuner.barrier().rule);
      ASSERT_NE(ssp, nullptr);
      ASSERT_LE(ssp->staleness, rule.largest_staleness());
      ASSERT_LE(*tuner.barrier().sample, Tuned::sample_max);
      ASSERT_LE(tuner.state().waiting_share, 0.5);
      ASSERT_TRUE(std::isfinite(tuner.state().beta()) && std::isfinite(tuner.state().staleness()));
    }
  }
}

/// Returns the share of waiting that the law reaches for a worker with this lead. A draw of beta
/// others contains a laggard with probability 1 - 0.8^beta, and every refusal costs a quarter of a
/// step, which takes `step_time`.
double waiting_reached(double target, double lead, double step_time = 1) {
  const Tuned rule{Tuned::Measure::waiting, target};
  TunerState state = first_state(rule);
  Random random{7};
  double waited = 0;
  double lived = 0;
  for (int i = 0; i < 6000; ++i) {
    double wait = 0;
    while (random.real() > std::pow(0.8, state.beta())) wait += 0.25 * step_time;
    state =
        next(rule, state,
             {.step_time = step_time, .waited = wait, .answers = 8, .mean_lag = 1, .lead = lead});
    if (i >= 1000) {
      waited += wait;
      lived += step_time + wait;
    }
  }
  return waited / lived;
}

/// If the share of waiting is a function of beta, the law finds the beta with the wanted share.
TEST(Tuner, MeetsATargetOfWaiting) {
  for (const double target : {0.02, 0.05, 0.2, 0.4})
    EXPECT_NEAR(waiting_reached(target, 0), target, 0.01 + 0.1 * target);
}

TEST(Tuner, DependsOnNoUnitOfTime) {
  EXPECT_DOUBLE_EQ(waiting_reached(0.05, 0, 0x1p-10), waiting_reached(0.05, 0));
}

TEST(Tuner, LetsAWorkerAheadWaitForLongerThanOneBehind) {
  EXPECT_NEAR(waiting_reached(0.05, 1), 0.073, 0.01);
  EXPECT_NEAR(waiting_reached(0.05, -1), 0.026, 0.01);
  EXPECT_NEAR(waiting_reached(0.7, 1), 0.78, 0.03) << "the odds are 7 : 3 times 1.5";
}

/// A worker that has nobody behind it never waits, so a larger sample would only cost questions.
TEST(Tuner, OfTheSlowestWorkerDoesNotAskEverMore) {
  TunerState state = first_state(waiting_5);
  state.mean_lag = 3;
  for (int i = 0; i < 1000; ++i)
    state = next(waiting_5, state, {.step_time = 1, .waited = 0, .answers = 4, .mean_lag = 0});
  EXPECT_LT(state.beta(), Tuned::sample_max / 2.0);
}

TEST(Tuner, LowersSWhileTheLagIsTooLargeAndEnlargesTheSampleIfSDoesNotHold) {
  TunerState state = first_state(staleness_3);
  const double beta_before = state.beta();
  for (int i = 0; i < 100; ++i)
    state =
        next(staleness_3, state, {.step_time = 1, .answers = 8, .mean_lag = 10, .largest_lag = 80});
  EXPECT_EQ(state.staleness(), 0);
  EXPECT_GT(state.beta(), 4 * beta_before);
}

/// The bound must fall before the lag is above the target, or the lag overshoots it.
TEST(Tuner, LowersTheBoundWhileTheLagRisesTowardsItsTarget) {
  TunerState state = first_state(staleness_3);
  const auto seen = [](double mean) {
    return Observation{.step_time = 1, .answers = 8, .mean_lag = mean, .largest_lag = 4};
  };
  for (int i = 0; i < 3; ++i) state = next(staleness_3, state, seen(1.5));
  const TunerState rising = next(staleness_3, state, seen(4));
  ASSERT_LT(rising.mean_lag, staleness_3.target);
  EXPECT_LT(rising.staleness(), state.staleness());
  EXPECT_GT(next(staleness_3, state, seen(1.5)).staleness(), state.staleness());
}

TEST(Tuner, RaisesSOnlyWhileItBinds) {
  Observation seen{.step_time = 1, .waited = 0, .answers = 8, .mean_lag = 0.5, .largest_lag = 1};
  TunerState state = first_state(staleness_3);
  for (int i = 0; i < 500; ++i) state = next(staleness_3, state, seen);
  EXPECT_EQ(state, next(staleness_3, state, seen)) << "no worker is near s behind, so s stays";
  EXPECT_LT(state.staleness(), 8);
  seen.waited = 1;
  for (int i = 0; i < 500; ++i) state = next(staleness_3, state, seen);
  EXPECT_LT(state.staleness(), 8) << "it waited for answers only";
  seen.was_refused = true;
  for (int i = 0; i < 500; ++i) state = next(staleness_3, state, seen);
  EXPECT_DOUBLE_EQ(state.staleness(), Tuned::staleness_max);
}

/// s and beta need not be whole numbers: the numbers used have them as means.
TEST(Tuner, UsesWholeNumbersWithTheRightMean) {
  Tuner tuner{waiting_5};
  Tuner::Time now{};
  double drawn = 0;
  double wanted = 0;
  for (Step step = 1; step <= 400; ++step) {
    wanted += tuner.state().beta();
    drawn += static_cast<double>(*tuner.barrier().sample);
    EXPECT_LE(std::abs(wanted - drawn), 1 + 1e-9) << step;
    tuner.arrive(now += 10ms, step);
    tuner.pass(now += step % 16 == 0 ? 8ms : 0ms);
  }
  EXPECT_GT(drawn, 0);
}

TEST(Tuner, CountsAnswersToTheFirstDrawOnly) {
  Tuner tuner{staleness_3};
  tuner.arrive(10ms, 20);
  tuner.begin_draw();
  tuner.see(10);
  tuner.see(finished);
  tuner.begin_draw();
  tuner.see(0);
  tuner.pass(20ms);
  EXPECT_EQ(tuner.state().mean_lag, 5) << "10 steps behind and ahead; not 20";
  EXPECT_EQ(tuner.state().lead, 0) << "one behind and one ahead";
  EXPECT_GT(tuner.state().beta(), first_state(staleness_3).beta()) << "s does not hold";
}

TEST(Tuner, IsMadeForTunedBarriersOnly) {
  EXPECT_FALSE(make_tuner(sampled(Ssp{4}, 2)));
  ASSERT_TRUE(make_tuner({staleness_3}));
  EXPECT_EQ(make_tuner({staleness_3})->barrier(), sampled(Ssp{3}, 8));
  EXPECT_TRUE(make_tuner({by_progress}));
  EXPECT_TRUE(moves_with_descent({by_progress}));
  EXPECT_FALSE(moves_with_descent({waiting_5}) || moves_with_descent(sampled(Ssp{4}, 2)));
}

TEST(Tuner, HasMeansForASummary) {
  EXPECT_EQ(print(TunedSum{}), "");
  TunedSum sum;
  sum.add(std::nullopt);
  EXPECT_EQ(sum.workers, 0U);
  sum.add(Tuner{staleness_3});
  sum.add({1, 0, 0.255});
  EXPECT_EQ(sum.workers, 2U);
  EXPECT_EQ(print(sum), "s 1.5, beta 4.13; means over the workers");
}

}  // namespace
}  // namespace starling::barrier
