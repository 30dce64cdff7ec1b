/// Tests how much a cache saves, and in which jobs it is refused.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/sim/counting.hpp"

namespace starling::sim {
namespace {

using core::Mode;
using namespace std::chrono_literals;

/// Returns the share of the ranges that 4 workers with these slownesses have asked owners for.
double pulled_share(const char* barrier, std::vector<double> slowness = {}) {
  ProtocolOptions options = small_job();
  options.cache = true;
  options.barrier = barrier::parse(barrier).value();
  options.steps = 100;
  options.slowness = std::move(slowness);
  options.step_time = {laws::Constant{20ms}};
  CountingRun job{options};
  job.run();
  job.expect_each_update_once();
  const core::ReadCounts reads = job->result().reads;
  EXPECT_EQ(reads.ranges, 4U * 100 * 3);
  return static_cast<double>(reads.pulled) / static_cast<double>(reads.ranges);
}

TEST(Cache, NeedsAThirdOfThePullsAtMost) { EXPECT_LE(pulled_share("ssp:s=4"), 1.0 / 3); }

TEST(Cache, SavesMoreTheOlderReadsMayBe) {
  EXPECT_LE(pulled_share("ssp:s=1"), 1);
  EXPECT_LT(pulled_share("ssp:s=4"), pulled_share("ssp:s=2"));
  EXPECT_LT(pulled_share("ssp:s=8"), pulled_share("ssp:s=4"));
}

/// The workers before a straggler are as far ahead as the barrier lets them: what they have read is
/// too old at once. Only the straggler saves reads.
TEST(Cache, SavesLittleBeforeAStraggler) {
  const double share = pulled_share("ssp:s=4", first_is_slow(4, 4));
  EXPECT_GT(share, 0.7);
  EXPECT_LT(share, 0.9);
}

std::string refusal(std::string_view exchange, Mode mode, const char* barrier) {
  const auto valid = core::check_cache(exchange, mode, barrier::parse(barrier).value());
  return valid ? "" : valid.error().message;
}

TEST(Cache, IsRefusedWhereItCannotKeepItsPromise) {
  EXPECT_EQ(refusal("owners", Mode::central, "ssp:s=4"), "");
  EXPECT_EQ(refusal("owners", Mode::central, "pssp:s=4,beta=2"), "");
  for (const char* barrier : {"asp", "ssp:s=inf", "quorum:q=0.9"})
    EXPECT_EQ(refusal("owners", Mode::central, barrier),
              "cache: " + barrier::print(barrier::parse(barrier).value()) +
                  " sets no bound on how old a read may be; valid: a barrier with a staleness, as "
                  "ssp:s=4");
  for (const char* barrier : {"bsp", "pbsp:beta=2"})
    EXPECT_EQ(refusal("owners", Mode::central, barrier),
              "cache: " + std::string{barrier} +
                  " lets no read be old, so nothing could be kept; valid: a barrier with a "
                  "staleness, as ssp:s=4");
  EXPECT_EQ(refusal("owners", Mode::central, "tuned:staleness=3"),
            "cache: under tuned:staleness=3 reads could be as old as the largest staleness that it "
            "may choose; valid: a barrier with a staleness, as ssp:s=4");
  for (const Mode mode : {Mode::hybrid, Mode::peer})
    EXPECT_EQ(refusal("owners", mode, "pssp:s=4,beta=2"),
              "cache: in " + core::print(mode) +
                  " mode no one knows what step all workers have reached, so a worker cannot tell "
                  "how old its copies are; valid: mode central");
  EXPECT_EQ(refusal("broadcast", Mode::peer, "pssp:s=4,beta=2"),
            "cache: with exchange broadcast every worker has the whole model already; valid: "
            "exchange owners");
  EXPECT_TRUE(core::check_cache(models::Optimizer{models::Sgd{.lr = 1}}));
  const auto stateful = core::check_cache(models::Optimizer{models::Sgd{.lr = 1, .momentum = 0.9}});
  ASSERT_FALSE(stateful);
  EXPECT_NE(stateful.error().message.find("valid: sgd without momentum"), std::string::npos);
}

}  // namespace
}  // namespace starling::sim
