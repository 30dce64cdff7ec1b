#include "starling/barrier/rules/fluent.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

Step run_to(double probability, const Pace& own, const std::vector<Pace>& others) {
  return Fluent{.staleness = 3, .probability = probability}.run_to(own, others);
}

TEST(Fluent, OnlyTheFastestPausesIfItIsFarAhead) {
  const std::vector<Pace> others{{.step = 6}, {.step = 9}};
  EXPECT_EQ(run_to(1, {.step = 9}, others), 10U) << "3 steps ahead are few";
  EXPECT_EQ(run_to(1, {.step = 10}, others), 10U);
  EXPECT_EQ(run_to(1, {.step = 10}, {{.step = 6}, {.step = 11}}), 11U) << "another is faster";
  EXPECT_EQ(run_to(1, {.step = 10}, {{.step = 6}, {.step = 10}}), 10U) << "both are the fastest";
  EXPECT_EQ(run_to(1, {.step = 10}, {{.step = 6}, {.step = finished}}), 10U);
  EXPECT_EQ(run_to(1, {.step = 10}, {{.step = finished}}), 11U);
  EXPECT_EQ(run_to(1, {.step = 10}, {}), 11U);
}

TEST(Fluent, PausesByChanceAndThenUntilTheSlowestIsNear) {
  const std::vector<Pace> others{{.step = 6}};
  EXPECT_EQ(run_to(0.5, {.step = 10, .chance = 0.49}, others), 10U);
  EXPECT_EQ(run_to(0.5, {.step = 10, .chance = 0.5}, others), 11U);
  EXPECT_EQ(run_to(0.5, {.step = 10, .waits = true, .chance = 0.9}, others), 10U);
  EXPECT_EQ(run_to(0.5, {.step = 10, .waits = true, .chance = 0.1}, {{.step = 7}}), 11U);
}

TEST(Fluent, IsSspWithProbabilityOneAndAspWithZero) {
  EXPECT_EQ(spread_bound({Fluent{3, 1}}), 4U);
  EXPECT_EQ(promised_floor({Fluent{3, 1}}, 20), 17U);
  EXPECT_TRUE(always_passes({Fluent{3, 0}}));
  EXPECT_EQ(spread_bound({Fluent{3, 0.9}}), std::nullopt);
  EXPECT_EQ(promised_floor({Fluent{3, 0.9}}, 20), std::nullopt);
  EXPECT_FALSE(needs_every_step({Fluent{3, 0}}));
  EXPECT_TRUE(needs_every_step({Fluent{3, 0.1}}));
  EXPECT_TRUE(always_passes({Fluent{unlimited, 0.5}})) << "s=inf";
}

/// Over all workers nobody is further ahead of the slowest than the fastest, so p=1 is SSP. Over a
/// sample a worker may see one that is far behind and one that is ahead, and passes.
TEST(Fluent, OverASamplePromisesNothing) {
  const Barrier fluent = sampled(Fluent{3, 1}, 2);
  EXPECT_EQ(run_to(fluent, {.step = 10}, std::vector<Pace>{{.step = 2}, {.step = 11}}), 11U);
  EXPECT_EQ(promised_floor(fluent, 20), std::nullopt);
  EXPECT_EQ(spread_bound(fluent), std::nullopt);
  EXPECT_EQ(run_to(fluent, {.step = 10}, std::vector<Pace>{{.step = 2}, {.step = 9}}), 10U);
  EXPECT_TRUE(always_passes(sampled(Fluent{3, 0}, 2)));
  EXPECT_FALSE(is_sampled(sampled(Fluent{3, 0}, 2)));
  EXPECT_TRUE(is_sampled(fluent));
}

TEST(Fluent, RefusesWhatIsNoProbability) {
  EXPECT_EQ(print(parse("fluent:s=2,p=0.25").value()), "fluent:s=2,p=0.25");
  EXPECT_EQ(parse("pfluent:s=2,p=0.25,beta=2").value(), sampled(Fluent{2, 0.25}, 2));
  for (const char* text : {"fluent:p=1.5", "fluent:p=-0.1", "fluent:p=nan", "pfluent:p=2,beta=2"})
    EXPECT_FALSE(parse(text)) << text;
}

}  // namespace
}  // namespace starling::barrier
