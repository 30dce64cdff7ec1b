/// Tests barriers in whole jobs: barriers that are equal by definition give equal runs, and the
/// steps of workers differ by at most the barrier's bound, which is reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "tests/engine/sim/counting.hpp"

namespace starling::sim {
namespace {

using core::Mode;

/// Two barriers that are the same by definition.
struct BarrierPair {
  Mode mode;
  const char* one;
  const char* other;
};

void PrintTo(const BarrierPair& pair, std::ostream* out) {
  *out << core::print(pair.mode) << " " << pair.one << " " << pair.other;
}

class EqualBarriers : public testing::TestWithParam<BarrierPair> {};

/// With the same network and computations, the same workers pass at the same nanoseconds.
TEST_P(EqualBarriers, LetTheSameWorkersPassAtTheSameTimes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions options = small_job();
    options.mode = GetParam().mode;
    options.workers = 6;
    options.slowness = first_is_slow(6, 3);
    options.seed = seed;
    options.barrier = barrier::parse(GetParam().one).value();
    CountingRun one{options};
    options.barrier = barrier::parse(GetParam().other).value();
    CountingRun other{options};
    one.run();
    other.run();
    EXPECT_EQ(one.passes, other.passes);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, EqualBarriers,
    testing::Values(BarrierPair{Mode::central, "bsp", "ssp:s=0"},
                    BarrierPair{Mode::central, "bsp", "pbsp:beta=5"},
                    BarrierPair{Mode::central, "ssp:s=2", "pssp:s=2,beta=5"},
                    BarrierPair{Mode::central, "asp", "ssp:s=inf"},
                    BarrierPair{Mode::central, "asp", "pbsp:beta=0"},
                    BarrierPair{Mode::central, "asp", "pssp:s=inf,beta=3"},
                    BarrierPair{Mode::central, "pbsp:beta=2", "pssp:s=0,beta=2"},
                    BarrierPair{Mode::central, "ssp:s=2", "fluent:s=2,p=1"},
                    BarrierPair{Mode::central, "asp", "fluent:s=2,p=0"},
                    BarrierPair{Mode::central, "dssp:low=1,high=4", "pdssp:low=1,high=4,beta=5"},
                    BarrierPair{Mode::central, "fluent:s=2,p=1", "pfluent:s=2,p=1,beta=5"},
                    BarrierPair{Mode::central, "asp", "pfluent:s=2,p=0,beta=3"},
                    BarrierPair{Mode::hybrid, "asp", "pfluent:s=2,p=0,beta=3"},
                    BarrierPair{Mode::peer, "asp", "pfluent:s=2,p=0,beta=3"},
                    BarrierPair{Mode::central, "bsp", "quorum:q=1"},
                    BarrierPair{Mode::central, "pbsp:beta=2", "pquorum:q=1,beta=2"},
                    BarrierPair{Mode::peer, "asp", "pbsp:beta=0"},
                    BarrierPair{Mode::peer, "asp", "pssp:s=inf,beta=3"},
                    BarrierPair{Mode::hybrid, "asp", "ssp:s=inf"},
                    BarrierPair{Mode::hybrid, "pbsp:beta=2", "pssp:s=0,beta=2"}));

/// A predicate that sees paces, and uses only the steps in them, decides as the rule over steps.
TEST(PredicateOfPaces, LetsTheSameWorkersPassAsSsp) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ProtocolOptions options = small_job();
    options.mode = Mode::central;
    options.workers = 6;
    options.slowness = first_is_slow(6, 3);
    options.seed = seed;
    options.barrier = {barrier::Ssp{2}};
    CountingRun ssp{options};
    options.barrier = {barrier::Predicate::of_paces(
        "near", [](const barrier::Pace& own, std::span<const barrier::Pace> others) {
          return std::ranges::all_of(
              others, [&](const barrier::Pace& other) { return other.step + 2 >= own.step; });
        })};
    CountingRun near{options};
    ssp.run();
    near.run();
    ASSERT_FALSE(ssp.passes.empty());
    EXPECT_EQ(ssp.passes, near.passes) << "seed " << seed;
  }
}

/// The bound must be reached too, because a bound that is never reached proves little.
TEST(SpreadBound, IsReachedButNotPassed) {
  for (const char* text : {"bsp", "ssp:s=1", "ssp:s=3"}) {
    ProtocolOptions options = small_job();
    options.barrier = barrier::parse(text).value();
    options.slowness = first_is_slow(options.workers, 10);
    CountingRun job{options};
    job.run();
    EXPECT_EQ(job.largest_spread(), *barrier::spread_bound(options.barrier)) << text;
    EXPECT_EQ(job->coordinator()->max_lag(), job.largest_spread()) << text;
  }
}

/// Step times that scatter by 5 %; a shape of 11 is a scatter of 30 %.
constexpr const char* five_percent = "gamma:mean=100ms,shape=400";

/// Returns the updates of jobs with 9 seeds in 20 s of simulated time, with workers that are slower
/// by these factors than a mean of 100 ms a step.
double updates_under(const char* barrier, const std::vector<double>& slowness,
                     const char* step_time = five_percent, Mode mode = Mode::central) {
  std::size_t sum = 0;
  for (std::uint64_t seed = 1; seed <= 9; ++seed) {
    ProtocolOptions options = small_job();
    options.mode = mode;
    options.workers = slowness.size();
    options.steps = barrier::unlimited;
    options.horizon = std::chrono::seconds{20};
    options.barrier = barrier::parse(barrier).value();
    options.step_time = parse_distribution(step_time).value();
    options.slowness = slowness;
    options.seed = seed;
    CountingRun job{options};
    job->run();  // the horizon ends it, not the last steps
    sum += job.passes.size();
  }
  return static_cast<double>(sum);
}

/// SSP makes as many updates as BSP if one worker takes twice as long for ever, and more if all are
/// slow from time to time.
TEST(Ssp, AbsorbsDelaysButNoPermanentStraggler) {
  EXPECT_LT(updates_under("ssp:s=3", {1, 1, 1, 2}), 1.04 * updates_under("bsp", {1, 1, 1, 2}));
  const char* scattered = "gamma:mean=100ms,shape=11.1";
  const double gain = updates_under("ssp:s=3", {1, 1, 1, 1}, scattered) /
                      updates_under("bsp", {1, 1, 1, 1}, scattered);
  EXPECT_GT(gain, 1.2);
  EXPECT_LT(gain, 1.4);
}

/// Workers whose speeds differ for ever make steps in proportion to them. EBSP gains nothing if the
/// durations scatter so much that no prediction holds.
TEST(Ebsp, LetsWorkersOfDifferentSpeedsMeet) {
  EXPECT_GT(updates_under("ebsp:ahead=15", {1, 1, 1, 2}),
            1.55 * updates_under("bsp", {1, 1, 1, 2}));
  EXPECT_GT(updates_under("ebsp:ahead=15", {1, 2}), 1.35 * updates_under("bsp", {1, 2}));
  const char* scattered = "gamma:mean=100ms,shape=11.1";
  const double gain = updates_under("ebsp:ahead=15", {1, 1, 1, 1}, scattered) /
                      updates_under("bsp", {1, 1, 1, 1}, scattered);
  EXPECT_GT(gain, 0.95);
  EXPECT_LT(gain, 1.05);
}

TEST(Fluent, MakesMoreUpdatesTheLessOftenTheFastestPauses) {
  const double often = updates_under("fluent:s=3,p=0.9", {1, 1, 1, 2});
  const double rarely = updates_under("fluent:s=3,p=0.1", {1, 1, 1, 2});
  EXPECT_GT(rarely, 1.02 * often);
  EXPECT_GT(updates_under("asp", {1, 1, 1, 2}), 1.1 * rarely);
}

/// Three of four workers go on together. The fourth makes what it can, half as many steps.
TEST(Quorum, DoesNotWaitForTheSlowest) {
  const double bsp = updates_under("bsp", {1, 1, 1, 2});
  EXPECT_GT(updates_under("quorum:q=0.75", {1, 1, 1, 2}), 1.6 * bsp);
  EXPECT_LT(updates_under("quorum:q=0.76", {1, 1, 1, 2}), 1.05 * bsp) << "all four";
  EXPECT_GT(updates_under("pquorum:q=0.6,beta=2", {1, 1, 1, 2}), 1.2 * bsp);
}

/// One of four workers takes twice as long, for ever. SSP then makes as many updates as BSP. DSSP
/// as published makes more, because the fastest worker gets far ahead; with a cap it gains less.
TEST(Dssp, GainsWithAPermanentStraggler) {
  const double ssp = updates_under("ssp:s=3", {1, 1, 1, 2});
  const double capped = updates_under("dssp:low=3,high=15,cap", {1, 1, 1, 2});
  const double published = updates_under("dssp:low=3,high=15", {1, 1, 1, 2});
  EXPECT_GT(capped, 1.01 * ssp);
  EXPECT_LT(capped, 1.07 * ssp);
  EXPECT_GT(published, 1.03 * capped);
}

TEST(Dssp, WithACapKeepsItsSpreadBound) {
  ProtocolOptions options = small_job();
  options.barrier = barrier::parse("dssp:low=1,high=4,cap").value();
  options.slowness = first_is_slow(options.workers, 10);
  CountingRun job{options};
  job.run();
  EXPECT_GT(job.largest_spread(), 2U) << "workers run";
  EXPECT_LE(job.largest_spread(), 5U);
  EXPECT_EQ(job->coordinator()->max_lag(), job.largest_spread());
}

/// Workers that ask each other gain as those whose coordinator draws. A worker that sees two of
/// three others draws the slowest less often than one that sees all.
TEST(SampledDsspAndFluent, GainInEveryMode) {
  const double bsp = updates_under("bsp", {1, 1, 1, 2});
  for (const Mode mode : {Mode::central, Mode::hybrid, Mode::peer}) {
    SCOPED_TRACE(core::print(mode));
    EXPECT_GT(updates_under("pdssp:low=3,high=15,beta=2", {1, 1, 1, 2}, five_percent, mode),
              1.15 * bsp);
    EXPECT_GT(updates_under("pfluent:s=3,p=0.5,beta=2", {1, 1, 1, 2}, five_percent, mode),
              1.15 * bsp);
  }
}

TEST(Asp, LeavesStragglersFarBehind) {
  ProtocolOptions options = small_job();
  options.barrier = {barrier::Asp{}};
  options.slowness = first_is_slow(options.workers, 50);
  CountingRun job{options};
  job.run();
  EXPECT_GT(job.largest_spread(), 6U);
}

}  // namespace
}  // namespace starling::sim
