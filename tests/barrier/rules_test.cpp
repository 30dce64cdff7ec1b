#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

using Steps = std::vector<Step>;

/// Passes if at least half of the seen workers have reached the worker's own step.
const Predicate half = Predicate::make("half", [](Step own, std::span<const Step> seen) {
  return 2 * std::ranges::count_if(seen, [&](Step step) { return step >= own; }) >=
         std::ssize(seen);
});

/// Returns every built-in rule, also with its smallest and largest staleness, and a predicate.
std::vector<AnyRule> every_rule() {
  std::vector<AnyRule> rules = built_in_rules();
  rules.insert(rules.end(), {Ssp{0}, Ssp{1}, Ssp{finished}, half});
  return rules;
}

TEST(Bsp, PassesIfNoSeenWorkerIsBehind) {
  const Barrier bsp{Bsp{}};
  EXPECT_TRUE(admits(bsp, 3, Steps{3, 4, 3}));
  EXPECT_FALSE(admits(bsp, 3, Steps{4, 2, 4}));
  EXPECT_EQ(floor(bsp, 3), 3U);
}

TEST(Ssp, ToleratesALagOfExactlyS) {
  const Barrier ssp{Ssp{4}};
  EXPECT_TRUE(admits(ssp, 10, Steps{6, 20}));
  EXPECT_FALSE(admits(ssp, 10, Steps{5, 20}));
  EXPECT_EQ(floor(ssp, 10), 6U);
}

TEST(Ssp, HasAFloorThatNeverWrapsBelowZero) {
  for (const Step own : {0U, 1U, 3U, 4U}) {
    EXPECT_EQ(floor({Ssp{4}}, own), 0U);
    EXPECT_TRUE(admits({Ssp{4}}, own, Steps{0}));
  }
  EXPECT_EQ(floor({Ssp{4}}, 5), 1U);
  EXPECT_FALSE(admits({Ssp{4}}, 5, Steps{0}));
}

TEST(Ssp, WithoutStalenessIsBsp) {
  for (Step own = 0; own < 5; ++own) {
    EXPECT_EQ(floor({Ssp{0}}, own), floor({Bsp{}}, own));
    for (Step other = 0; other < 5; ++other)
      EXPECT_EQ(admits({Ssp{0}}, own, Steps{other}), admits({Bsp{}}, own, Steps{other}));
  }
}

TEST(Ssp, WithInfiniteStalenessIsAsp) {
  for (const Step own : {Step{0}, Step{1}, finished - 1}) {
    EXPECT_EQ(floor({Ssp{finished}}, own), 0U);
    EXPECT_TRUE(admits({Ssp{finished}}, own, Steps{0}));
  }
}

TEST(EveryRule, ThatIsBuiltInPassesAtStepZero) {
  for (const AnyRule& rule : built_in_rules()) {
    EXPECT_TRUE(admits({rule}, 0, Steps{0, 0, 7}));
    EXPECT_EQ(floor({rule}, 0).value_or(0), 0U);
  }
}

TEST(EveryRule, PassesIfItSeesNoWorker) {
  for (const AnyRule& rule : every_rule()) EXPECT_TRUE(admits({rule}, 1000, Steps{}));
}

TEST(EveryRule, PassesIfAllOthersHaveFinished) {
  for (const AnyRule& rule : every_rule())
    EXPECT_TRUE(admits({rule}, finished - 1, Steps{finished, finished}));
}

/// So some worker always goes on, and no job stands still.
TEST(EveryRule, LetsTheSlowestWorkerPass) {
  for (const AnyRule& rule : every_rule())
    for (Step own = 0; own < 10; ++own) {
      const Steps seen{own, own + 1, own + 100, finished};
      EXPECT_TRUE(admits({rule}, own, seen)) << print({rule});
      if (!needs_paces({rule}) || has_rounds({rule})) continue;
      std::vector<Pace> others;
      for (const Step step : seen) others.push_back({.step = step});
      for (const bool waits : {false, true}) {
        EXPECT_GT(run_to({rule}, {.step = own, .waits = waits}, others), own) << print({rule});
      }
    }
}

TEST(EveryRule, ThatHasAFloorAgreesWithIt) {
  for (const AnyRule& rule : every_rule())
    for (Step own = 0; own < 10; ++own)
      for (Step other = 0; floor({rule}, own) && other < 10; ++other)
        EXPECT_EQ(admits({rule}, own, Steps{finished, other}), other >= *floor({rule}, own));
}

TEST(EveryRule, KeepsItsSpreadBound) {
  for (const AnyRule& rule : every_rule())
    for (Step own = 0; own < 10; ++own)
      for (Step other = 0; other < 10; ++other) {
        const bool passes = admits({rule}, own, Steps{finished, other});
        if (passes && own >= other && spread_bound({rule})) {
          EXPECT_LT(own - other, *spread_bound({rule})) << print({rule});
        }
        if (always_passes({rule})) {
          EXPECT_TRUE(passes && floor({rule}, own) == Step{0}) << print({rule});
        }
      }
}

TEST(Asp, NeverWaits) {
  EXPECT_TRUE(admits({Asp{}}, 100, Steps{0, 0}));
  EXPECT_EQ(floor({Asp{}}, 100), 0U);
}

TEST(UserPredicate, NeedsAllAnswersToDecide) {
  EXPECT_EQ(floor({half}, 5), std::nullopt);
  EXPECT_TRUE(admits({half}, 5, Steps{5, 0}));
  EXPECT_FALSE(admits(sampled(half, 3), 5, Steps{5, 0, 0}));
}

TEST(UserPredicate, OfPacesDecidesByTimes) {
  using namespace std::chrono_literals;
  // Passes unless a worker that is behind is predicted to push within 50 ms.
  const Barrier soon{Predicate::of_paces("soon", [](const Pace& own, std::span<const Pace> others) {
    return std::ranges::none_of(others, [&](const Pace& other) {
      const auto next_push = other.pushed_at + other.interval;
      return other.step < own.step && next_push > own.pushed_at && next_push < own.pushed_at + 50ms;
    });
  })};
  ASSERT_TRUE(needs_paces(soon));
  EXPECT_TRUE(needs_every_step(soon));
  EXPECT_EQ(promised_floor(soon, 5), std::nullopt);
  EXPECT_FALSE(needs_every_step(sampled(soon.rule, 2)));
  EXPECT_EQ(promised_floor(sampled(soon.rule, 2), 5), std::nullopt);
  const Pace own{.step = 5, .pushed_at = 1000ms};
  const auto next_step = [&](Step step, std::chrono::nanoseconds interval) {
    const std::vector others{Pace{.step = step, .pushed_at = 900ms, .interval = interval}};
    return run_to(soon, own, others);
  };
  EXPECT_EQ(next_step(1, 120ms), 5U) << "waits for a push at 1020 ms";
  EXPECT_EQ(next_step(1, 300ms), 6U) << "does not wait for a push at 1200 ms";
  EXPECT_EQ(next_step(5, 120ms), 6U) << "does not wait for a worker that is not behind";
  EXPECT_FALSE(needs_paces({half}));
}

TEST(Sampling, DoesNotChangeTheRule) {
  EXPECT_FALSE(admits(sampled(Bsp{}, 2), 3, Steps{3, 2}));
  EXPECT_EQ(floor(sampled(Ssp{4}, 2), 10), 6U);
}

TEST(SeenWorkers, AreAllOthersOrTheSampleSize) {
  EXPECT_EQ(seen_workers({Bsp{}}, 7), 7U);
  EXPECT_EQ(seen_workers(sampled(Bsp{}, 3), 7), 3U);
  EXPECT_EQ(seen_workers(sampled(Bsp{}, 3), 2), 2U);
  EXPECT_EQ(seen_workers(sampled(Bsp{}, 3), 0), 0U);
}

TEST(SeenWorkers, AreNoneIfTheBarrierAlwaysPasses) {
  for (const Barrier& barrier : {Barrier{Asp{}}, sampled(Bsp{}, 0), Barrier{Ssp{finished}},
                                 sampled(Ssp{finished}, 3), sampled(half, 0)}) {
    EXPECT_TRUE(always_passes(barrier)) << print(barrier);
    EXPECT_EQ(seen_workers(barrier, 7), 0U) << print(barrier);
    EXPECT_FALSE(needs_every_step(barrier)) << print(barrier);
    EXPECT_EQ(spread_bound(barrier), std::nullopt) << print(barrier);
  }
}

TEST(NeedsEveryStep, IfTheRuleSeesAllWorkers) {
  EXPECT_TRUE(needs_every_step({Bsp{}}));
  EXPECT_TRUE(needs_every_step({Ssp{4}}));
  EXPECT_TRUE(needs_every_step({half}));
  EXPECT_FALSE(needs_every_step(sampled(Bsp{}, 3)));
  EXPECT_FALSE(needs_every_step(sampled(half, 3)));
}

TEST(SpreadBound, IsOneMoreThanTheStaleness) {
  EXPECT_EQ(spread_bound({Bsp{}}), 1U);
  EXPECT_EQ(spread_bound({Ssp{0}}), 1U);
  EXPECT_EQ(spread_bound({Ssp{4}}), 5U);
  EXPECT_EQ(spread_bound({Ssp{finished - 1}}), finished);
}

TEST(SpreadBound, IsAbsentForSamplesAndPredicates) {
  EXPECT_EQ(spread_bound(sampled(Bsp{}, 3)), std::nullopt);
  EXPECT_EQ(spread_bound({half}), std::nullopt);
}

TEST(IsBsp, IsTrueForBspAndSspWithoutStaleness) {
  EXPECT_TRUE(is_bsp({Bsp{}}));
  EXPECT_TRUE(is_bsp({Ssp{0}}));
  EXPECT_FALSE(is_bsp({Ssp{1}}));
  EXPECT_FALSE(is_bsp({Asp{}}));
  EXPECT_FALSE(is_bsp(sampled(Bsp{}, 3)));
  EXPECT_FALSE(is_bsp({half}));
}

TEST(Check, RefusesASampleOfMoreThanAllOthers) {
  EXPECT_TRUE(check(sampled(Bsp{}, 7), 8));
  EXPECT_EQ(check(sampled(Bsp{}, 8), 8).error().message,
            "barrier pbsp:beta=8: beta=8, but each of 8 workers has 7 others; "
            "valid: beta = 0 to 7, as in pbsp:beta=7");
  EXPECT_TRUE(check(sampled(Bsp{}, 0), 1));
  EXPECT_EQ(check(sampled(Ssp{4}, 1), 1).error().message,
            "barrier pssp:s=4,beta=1: beta=1, but a lone worker has no others; "
            "valid: beta = 0, as in pssp:s=4,beta=0");
}

TEST(Check, RefusesOptionsFromCodeThatTextCannotHave) {
  EXPECT_EQ(check({Dssp{.low = 20}}, 8).error().message,
            "barrier: dssp: high=15: valid: at least low=20");
  EXPECT_FALSE(check({Ebsp{.ahead = 0}}, 8));
  EXPECT_FALSE(check({Fluent{.probability = 2}}, 8));
  EXPECT_FALSE(check({Quorum{.share = -1}}, 8));
  EXPECT_TRUE(check({Fluent{.staleness = finished}}, 8));
}

TEST(Check, AcceptsAnyNumberOfWorkersWithoutASample) {
  EXPECT_TRUE(check({Bsp{}}, 1));
  EXPECT_TRUE(check({Ssp{4}}, 1));
  EXPECT_TRUE(check({Asp{}}, 1));
}

}  // namespace
}  // namespace starling::barrier
