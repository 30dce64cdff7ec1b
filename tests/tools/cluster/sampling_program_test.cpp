/// Checks how workers in several processes draw samples, and how often a draw lets them pass.
#include <cmath>
#include <nlohmann/json.hpp>

#include "starling/barrier/sampling.hpp"
#include "tests/barrier/statistics.hpp"
#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class SamplingProgram : public Drill {
 protected:
  /// Waits until `is_enough` accepts the status of all workers of the only job. Returns it, in the
  /// order of their ids.
  template <class Condition>
  std::vector<nlohmann::json> wait_for_workers(Condition is_enough) {
    std::vector<nlohmann::json> workers;
    EXPECT_TRUE(fleet_->watch(90s, [&] {
      const ProgramResult ran = fleet_->run("status --json" + fleet_->client_flags(0));
      const auto status_json = nlohmann::json::parse(ran.out, nullptr, false);
      if (status_json.is_discarded() || status_json["jobs"].size() != 1) return false;
      const auto& members = status_json["jobs"][0]["members"];
      workers.assign(members.begin(), members.end());
      return is_enough(workers);
    })) << fleet_->status_of(0)->text;
    return workers;
  }
};

/// Fifty workers on five nodes. Nine are so slow that they stay in their first step. The steps of
/// the others take equally long, so that only the nine can be behind by more than the staleness
/// of 50.
TEST_F(SamplingProgram, IsUniformAndLetsPassWithTheTheoreticalProbability) {
  constexpr std::uint64_t worker_count = 50;
  constexpr std::uint64_t slow_count = 9;
  constexpr std::uint64_t beta = 2;
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(5));
  fleet_->submit(1,
                 "--data digits:n=500 --model softmax --workers 50 --steps 100 --mode peer "
                 "--barrier pssp:s=50,beta=2 --recheck interval:5ms --delay const:20ms "
                 "--straggler 9:100000x --quiet --save m.safetensors");
  // The others stay in their step, so that no worker draws any more. A node knows a member's counts
  // as they were when it was asked the last time.
  const auto sum_of = [](const auto& all, const char* count) {
    std::uint64_t sum = 0;
    for (const auto& worker : all) sum += worker[count].template get<std::uint64_t>();
    return sum;
  };
  const auto workers = wait_for_workers([&](const auto& all) {
    return std::ranges::count(all, "done", [](const auto& worker) { return worker["state"]; }) ==
               worker_count - slow_count &&
           sum_of(all, "drawn") == beta * sum_of(all, "draws");
  });
  ASSERT_EQ(workers.size(), worker_count);
  const std::uint64_t draws = sum_of(workers, "draws");
  const std::uint64_t passes = sum_of(workers, "passes");
  std::vector<std::uint64_t> drawn;
  for (const auto& worker : workers) drawn.push_back(worker["drawn"].get<std::uint64_t>());
  EXPECT_EQ(passes, (worker_count - slow_count) * 49) << "after steps 51 to 99";
  const double expected_share =
      barrier::pass_probability(worker_count - 1 - slow_count, worker_count - 1, beta);
  report("passes", std::to_string(passes) + " of " + std::to_string(draws) +
                       " draws, expected share " + std::to_string(expected_share));
  EXPECT_LT(std::abs(deviations(passes, draws, expected_share)), 5);
  std::vector<double> expected;
  for (const auto& worker : workers)
    expected.push_back(static_cast<double>(beta * (draws - worker["draws"].get<std::uint64_t>())) /
                       static_cast<double>(worker_count - 1));
  const double deviate = agreement(drawn, expected);
  report("chi_square_deviate", std::to_string(deviate));
  EXPECT_LT(std::abs(deviate), 5);
  EXPECT_EQ(fleet_->run("stop" + fleet_->client_flags(0)).code, 0);
  EXPECT_EQ(fleet_->finish().code, 0);
}

/// Twenty workers on five nodes, of which five are slow. Workers are asked the more often the more
/// steps a second they make; nobody is left out.
TEST_F(SamplingProgram, BySpeedDrawsSlowWorkersLess) {
  constexpr std::uint64_t worker_count = 20;
  constexpr std::uint64_t slow_count = 5;
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(5));
  fleet_->submit(1,
                 "--data digits:n=500 --model softmax --workers 20 --steps 1000000 --mode peer "
                 "--barrier pssp:s=5,beta=2,draw=speed --recheck interval:5ms --delay const:20ms "
                 "--straggler 5:6x --quiet --save m.safetensors");
  const auto workers = wait_for_workers([](const auto& all) {
    return all.size() == worker_count && std::ranges::all_of(all, [](const auto& worker) {
             return worker["step"].template get<std::uint64_t>() >= 60;
           });
  });
  ASSERT_EQ(workers.size(), worker_count);
  double fast = 0;
  double slow = 0;
  for (std::size_t i = 0; i < worker_count; ++i) {
    const auto drawn = workers[i]["drawn"].get<double>();
    EXPECT_GT(drawn, 0) << "worker " << i;
    (i < worker_count - slow_count ? fast : slow) += drawn;
  }
  fast /= worker_count - slow_count;
  slow /= slow_count;
  report("drawn", "fast " + std::to_string(fast) + ", slow " + std::to_string(slow));
  EXPECT_LT(slow, 0.8 * fast);
  EXPECT_EQ(fleet_->run("stop" + fleet_->client_flags(0)).code, 0);
  EXPECT_EQ(fleet_->finish().code, 0);
}

}  // namespace
}  // namespace starling::program
