/// Measures steps whose sums overlap with the next step, on hosts with slow links.
#include <algorithm>
#include <array>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class Overlap : public Drill {
 protected:
  static constexpr std::size_t hosts = 4;
  /// 2 MB are summed in each step, of which a ring of four sends 3 MB from each host.
  static constexpr std::size_t megabits_per_s = 100;

  /// Returns the seconds of a step of `steps` steps, each of which computes for `delay_ms`.
  double seconds_of_a_step(const std::string& exchange, int delay_ms, int steps) {
    fleet_->submit(1,
                   "--data linear:d=500000,n=20 --split 16 --batch 1 --optimizer sgd:lr=0.000001 "
                   "--workers 4 --mode peer --barrier bsp --eval-every 1000000 --json --quiet "
                   "--exchange " +
                       exchange + " --delay const:" + std::to_string(delay_ms) + "ms --steps " +
                       std::to_string(steps));
    const ProgramResult ran = fleet_->finish();
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(number_in(ran.out, "updates"), hosts * steps) << ran.out;
    return hosts / number_in(ran.out, "updates_per_s");
  }
};

/// HPSGD's claim (Zhou et al. 2020, arXiv 2009.02701): a step takes the longer of computing and
/// summing, and without overlap both. Here the nodes share the processors, so overlap must hide at
/// least half of the shorter time.
TEST_F(Overlap, HidesMostOfTheShorterOfComputingAndSumming) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(hosts));
  if (IsSkipped()) return;
  if (auto limited = fleet_->hosts().limit_bandwidth(megabits_per_s); !limited)
    GTEST_SKIP() << limited.error().message;
  // Computing takes the delay and the time for the gradient, which is part of `sum` too.
  const double sum = seconds_of_a_step("allreduce:ring", 0, 20);
  for (const double ratio : {0.25, 1.0, 2.0}) {
    const double computing = sum / ratio;
    const int delay_ms = static_cast<int>(1000 * computing);
    const double in_turn = seconds_of_a_step("allreduce:ring", delay_ms, 20);
    const double overlapped = seconds_of_a_step("allreduce:ring,overlap", delay_ms, 20);
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(),
                  "computing %.3f s, sum %.3f s: a step takes %.3f s, with overlap %.3f s",
                  computing, sum, in_turn, overlapped);
    report("sum_by_computing_" + std::to_string(ratio).substr(0, 4), line.data());
    EXPECT_GT(in_turn - overlapped, std::min(computing, sum) / 2);
  }
}

}  // namespace
}  // namespace starling::program
