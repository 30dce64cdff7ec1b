/// Nodes on hosts of their own that die and come back while their workers sum updates in rounds.
#include <string>
#include <vector>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class SumDeaths : public Drill {
 protected:
  /// Returns how often each range of the last checkpoint was updated.
  [[nodiscard]] std::vector<std::uint64_t> updates_of_ranges() const {
    // Three numbers for each range; the first one counts its updates.
    const auto numbers = integers_of(fleet_->work_folder().read("c.ckpt"), "starling.ranges");
    std::vector<std::uint64_t> updates;
    for (std::size_t i = 0; i < numbers.size(); i += 3) updates.push_back(numbers[i]);
    return updates;
  }
};

const std::vector<JobMode> sums{
    {"peer", "bsp --exchange allreduce"},
    {"peer", "bsp --exchange allreduce:ring"},
    {"peer", "bsp --exchange allreduce:ring,overlap"},
    {"peer", "bsp --exchange allreduce:parts --optimizer adam:lr=0.003"}};

std::string number_of(const testing::TestParamInfo<JobMode>& info) {
  return std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(In, SumDeaths, testing::ValuesIn(sums), number_of);

/// The model has each round once: no step is lost or repeated, although the workers that make it
/// change. STARLING_DRILL_DEATHS is the number of deaths, 17 if it is not set.
TEST_P(SumDeaths, OfAnyNodeAtAnyMomentNeitherEndTheJobNorLoseOrRepeatARound) {
  constexpr std::uint64_t steps = 3000;
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  const int deaths = number_of_deaths(17);
  const unsigned seed = draw_seed();
  report("seed", std::to_string(seed));
  std::mt19937 random{seed};
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), steps));
  std::vector<std::size_t> node_on_host{0, 1, 2, 3, 4};
  int killed = 0;
  for (; killed < deaths && fleet_->is_training(); ++killed) {
    fleet_->watch(Time{random() % 1000});
    const std::size_t host = random() % 5;
    fleet_->kill(node_on_host[host]);
    fleet_->watch(Time{2500});
    node_on_host[host] = fleet_->start(host);
    fleet_->watch(1s);
  }
  report("deaths", std::to_string(killed));
  EXPECT_GE(killed, deaths / 2);
  expect_good_model_without_long_pause();
  EXPECT_NE(summary_.find("\"equal_copies\":true"), std::string::npos) << summary_;
  const auto updates = updates_of_ranges();
  EXPECT_EQ(updates, std::vector<std::uint64_t>(updates.size(), steps));
  EXPECT_FALSE(updates.empty());
}

}  // namespace
}  // namespace starling::program
