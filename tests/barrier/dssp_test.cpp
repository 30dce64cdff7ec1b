#include "starling/barrier/rules/dssp.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

using namespace std::chrono_literals;

/// The fastest worker is at step 10, and has pushed at 100 ms. The slowest pushes every 40 ms, the
/// last time at 95 ms.
constexpr Pace fastest{10, 100ms, 10ms};
constexpr Pace slowest{6, 95ms, 40ms};

TEST(Dssp, RunsToWhereTheLastPushMeetsAPushOfTheSlowest) {
  // The slowest pushes at 135, 175 and 215 ms. After 3 steps the fastest pushes at 130 ms, after 4
  // at 140 ms, 5 ms before and after.
  EXPECT_EQ(Dssp::best_run(fastest, slowest, 12), 3U);
  EXPECT_EQ(Dssp::best_run(fastest, slowest, 2), 2U);
  EXPECT_EQ(Dssp::best_run(fastest, slowest, 0), 0U);
  // At 120, 145 and 170 ms: after 2 steps exactly.
  EXPECT_EQ(Dssp::best_run(fastest, {6, 95ms, 25ms}, 12), 2U);
  // At 101 ms at once.
  EXPECT_EQ(Dssp::best_run(fastest, {6, 61ms, 40ms}, 12), 0U);
  // It is late: it was to push at 90 ms, and can only push from now on at 130 ms.
  EXPECT_EQ(Dssp::best_run(fastest, {6, 50ms, 40ms}, 12), 3U);
}

TEST(Dssp, LetsOnlyTheFastestRun) {
  const Dssp dssp{.low = 3, .high = 15};
  const auto run = [&](const Pace& own, const std::vector<Pace>& others) {
    return dssp.run_to(own, others);
  };
  EXPECT_EQ(run({9, 100ms, 10ms}, {slowest}), 10U) << "3 steps ahead are few";
  EXPECT_EQ(run(fastest, {slowest, {8, 90ms, 20ms}}), 13U);
  EXPECT_EQ(run(fastest, {slowest, {11, 99ms, 10ms}}), 10U) << "another is faster";
  EXPECT_EQ(run(fastest, {slowest, {finished, 99ms, 10ms}}), 13U) << "it has made its last step";
  EXPECT_EQ(run({10, 100ms, 10ms, true}, {slowest}), 10U) << "it waits already";
  EXPECT_EQ(run({10, 100ms, 0ms}, {slowest}), 10U) << "its speed is not known";
  EXPECT_EQ(run(fastest, {{6, 95ms, 0ms}}), 10U) << "that of the slowest is not known";
  EXPECT_EQ(run(fastest, {}), 11U);
  EXPECT_EQ(run(fastest, {{6, 95ms, 25ms}, slowest}), 13U) << "the later one of two slowest";
}

TEST(Dssp, WithACapPassesNoMoreThanHighStepsAhead) {
  const std::vector<Pace> others{{6, 95ms, 1000ms}};
  EXPECT_EQ((Dssp{3, 15, false}).run_to({20, 100ms, 10ms}, others), 32U);
  EXPECT_EQ((Dssp{3, 15, true}).run_to({20, 100ms, 10ms}, others), 22U);
  EXPECT_EQ((Dssp{3, 15, true}).run_to({21, 100ms, 10ms}, others), 22U) << "15 steps ahead";
  EXPECT_EQ((Dssp{3, 15, true}).run_to({22, 100ms, 10ms}, others), 22U);
  EXPECT_EQ(spread_bound({Dssp{3, 15, true}}), 16U);
  EXPECT_EQ(spread_bound({Dssp{3, 15, false}}), std::nullopt);
  EXPECT_EQ(promised_floor({Dssp{3, 15, true}}, 20), 5U);
  EXPECT_EQ(promised_floor({Dssp{3, 15, false}}, 20), std::nullopt);
  EXPECT_FALSE(is_bsp({Dssp{1, 1, true}}));
}

/// A worker judges by those that it sees: another sample of the same workers decides otherwise.
/// With a cap, the seen ones are never further behind than the cap.
TEST(Dssp, OverASampleRunsAgainstTheSlowestSeen) {
  const Barrier sampled_dssp = sampled(Dssp{3, 15, true}, 2);
  const Pace own{20, 100ms, 10ms};
  const Pace slowest{6, 95ms, 1000ms};
  const Pace near{17, 95ms, 20ms};
  const Pace faster{21, 95ms, 10ms};
  EXPECT_EQ(run_to(sampled_dssp, own, std::vector{near, faster}), 21U) << "it sees no laggard";
  EXPECT_EQ(run_to(sampled_dssp, own, std::vector{near, slowest}), 22U);
  EXPECT_EQ(run_to(sampled_dssp, own, std::vector{faster, slowest}), 20U) << "another is faster";
  EXPECT_EQ(run_to(sampled_dssp, own, std::vector{Pace{}, near}), 20U) << "one is silent";
  EXPECT_EQ(promised_floor(sampled_dssp, 20), 5U);
  EXPECT_EQ(promised_floor(sampled(Dssp{3, 15, false}, 2), 20), std::nullopt);
  EXPECT_EQ(spread_bound(sampled_dssp), std::nullopt) << "nobody need see the slowest";
}

TEST(Dssp, IsReadAndPrinted) {
  EXPECT_EQ(*parse("dssp"), Barrier{Dssp{}});
  EXPECT_EQ(*parse("dssp:low=2,high=9,cap"), (Barrier{Dssp{2, 9, true}}));
  EXPECT_EQ(print(*parse("dssp:low=20")), "dssp:low=20,high=20");
  const auto error = [](const std::string& text) { return parse(text).error().message; };
  EXPECT_EQ(error("dssp:low=4,high=3"), "barrier: dssp: high=3: valid: at least low=4");
  EXPECT_NE(error("dssp:low=0").find("low"), std::string::npos) << error("dssp:low=0");
  EXPECT_EQ(*parse("pdssp:low=2,high=9,beta=3"), sampled(Dssp{2, 9}, 3));
  EXPECT_EQ(print(*parse("pdssp:beta=2,cap,draw=speed")),
            "pdssp:low=3,high=15,cap,beta=2,draw=speed");
  EXPECT_EQ(error("pdssp:low=3"), "barrier: pdssp: give the sample size, as in pdssp:low=3,beta=2");
  EXPECT_EQ(error("pdssp:low=4,high=3,beta=2"), "barrier: pdssp: high=3: valid: at least low=4");
  EXPECT_TRUE(needs_every_step({Dssp{}}));
  EXPECT_FALSE(needs_every_step(sampled(Dssp{}, 2)));
}

}  // namespace
}  // namespace starling::barrier
