/// Tests barriers in whole jobs: barriers that are equal by definition give equal runs, and the
/// steps of workers differ by at most the barrier's bound, which is reached.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

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
                    BarrierPair{Mode::peer, "asp", "pbsp:beta=0"},
                    BarrierPair{Mode::peer, "asp", "pssp:s=inf,beta=3"},
                    BarrierPair{Mode::hybrid, "asp", "ssp:s=inf"},
                    BarrierPair{Mode::hybrid, "pbsp:beta=2", "pssp:s=0,beta=2"}));

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
