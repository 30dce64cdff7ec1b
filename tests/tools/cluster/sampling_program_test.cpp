/// Checks how workers in several processes draw samples, and how often a draw lets them pass.
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "starling/barrier/sampling.hpp"
#include "tests/barrier/statistics.hpp"
#include "tests/tools/cluster/drills.hpp"

namespace starling::program {
namespace {

class SamplingProgram : public Drill {
 protected:
  /// Waits until `finished` workers of the only job are done; then no worker draws any more.
  /// Returns the status of all workers, in the order of their ids.
  std::vector<nlohmann::json> wait_for_workers(std::size_t finished) {
    std::vector<nlohmann::json> workers;
    EXPECT_TRUE(fleet_->watch(90s, [&] {
      const Ran ran = fleet_->run("status --json" + fleet_->access(0));
      const auto seen = nlohmann::json::parse(ran.out, nullptr, false);
      if (seen.is_discarded() || seen["jobs"].size() != 1) return false;
      const auto& members = seen["jobs"][0]["members"];
      workers.assign(members.begin(), members.end());
      return std::ranges::count(workers, "done", [](const auto& worker) {
               return worker["state"];
             }) == static_cast<std::ptrdiff_t>(finished);
    })) << fleet_->ask(0)->text;
    return workers;
  }
};

/// Fifty workers on five nodes. Nine stay in their first step. The steps of the others take equally
/// long, so that only the nine can be behind.
TEST_F(SamplingProgram, IsUniformAndLetsPassWithTheTheoreticalProbability) {
  constexpr std::uint64_t all = 50;
  constexpr std::uint64_t stuck = 9;
  constexpr std::uint64_t beta = 2;
  ASSERT_NO_FATAL_FAILURE(begin_here(5));
  fleet_->submit(1,
                 "--data digits:n=500 --model softmax --workers 50 --steps 100 --mode peer "
                 "--barrier pssp:s=50,beta=2 --recheck interval:5ms --delay const:20ms "
                 "--straggler 9:100000x --quiet --save m.safetensors");
  const auto workers = wait_for_workers(all - stuck);
  ASSERT_EQ(workers.size(), all);
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  std::vector<std::uint64_t> drawn;
  for (const auto& worker : workers) {
    draws += worker["draws"].get<std::uint64_t>();
    passes += worker["passes"].get<std::uint64_t>();
    drawn.push_back(worker["drawn"].get<std::uint64_t>());
  }
  EXPECT_EQ(passes, (all - stuck) * 49) << "after steps 51 to 99";
  const double expected_share = barrier::pass_probability(all - 1 - stuck, all - 1, beta);
  report("passes", std::to_string(passes) + " of " + std::to_string(draws) +
                       " draws, expected share " + std::to_string(expected_share));
  EXPECT_LT(std::abs(deviations(passes, draws, expected_share)), 5);
  EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), std::uint64_t{0}), beta * draws);
  std::vector<double> expected;
  for (const auto& worker : workers)
    expected.push_back(static_cast<double>(beta * (draws - worker["draws"].get<std::uint64_t>())) /
                       static_cast<double>(all - 1));
  const double deviate = agreement(drawn, expected);
  report("chi_square_deviate", std::to_string(deviate));
  EXPECT_LT(std::abs(deviate), 5);
  EXPECT_EQ(fleet_->run("stop" + fleet_->access(0)).code, 0);
  EXPECT_EQ(fleet_->finish().code, 0);
}

}  // namespace
}  // namespace starling::program
