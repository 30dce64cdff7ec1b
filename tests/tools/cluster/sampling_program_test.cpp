/// How workers of several processes draw samples, and how often these let them pass.
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
  /// The workers of the only job, by number, once `busy` of them are done and no worker draws any
  /// more.
  std::vector<nlohmann::json> at_rest(std::size_t busy) {
    std::vector<nlohmann::json> workers;
    EXPECT_TRUE(fleet_->watch(90s, [&] {
      const Ran ran = fleet_->run("status --json" + fleet_->access(0));
      const auto seen = nlohmann::json::parse(ran.out, nullptr, false);
      if (seen.is_discarded() || seen["jobs"].size() != 1) return false;
      const auto& members = seen["jobs"][0]["members"];
      workers.assign(members.begin(), members.end());
      return std::ranges::count(workers, "done", [](const auto& w) { return w["state"]; }) ==
             static_cast<std::ptrdiff_t>(busy);
    })) << fleet_->ask(0)->text;
    return workers;
  }
};

/// Fifty workers on five nodes. Nine stay in their first step; the others' steps take equally long,
/// so that no other worker in a sample of two can be behind.
TEST_F(SamplingProgram, IsUniformOverFiftyLiveWorkersAndLetsPassAsOftenAsTheLawSays) {
  constexpr std::uint64_t all = 50;
  constexpr std::uint64_t stuck = 9;
  constexpr std::uint64_t beta = 2;
  ASSERT_NO_FATAL_FAILURE(begin_here(5));
  fleet_->submit(1,
                 "--data digits:n=500 --model softmax --workers 50 --steps 100 --mode peer "
                 "--barrier pssp:s=50,beta=2 --recheck interval:5ms --delay const:20ms "
                 "--straggler 9:100000x --quiet --save m.safetensors");
  const auto workers = at_rest(all - stuck);
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
  const double law = barrier::pass_probability(all - 1 - stuck, all - 1, beta);
  tell("passes", std::to_string(passes) + " of " + std::to_string(draws) + " draws, by the law " +
                     std::to_string(law));
  EXPECT_LT(std::abs(deviations(passes, draws, law)), 5);
  EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), std::uint64_t{0}), beta * draws);
  std::vector<double> expected;
  for (const auto& worker : workers)
    expected.push_back(static_cast<double>(beta * (draws - worker["draws"].get<std::uint64_t>())) /
                       static_cast<double>(all - 1));
  const double apart = agreement(drawn, expected);
  tell("chi_square_deviate", std::to_string(apart));
  EXPECT_LT(std::abs(apart), 5);
  EXPECT_EQ(fleet_->run("stop" + fleet_->access(0)).code, 0);
  EXPECT_EQ(fleet_->finish().code, 0);
}

}  // namespace
}  // namespace starling::program
