/// Partitions the network of nodes that train.
#include <algorithm>
#include <functional>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class Partitions : public Drill {
 protected:
  /// Partitions five nodes: `minority` and the others receive nothing from each other; if
  /// `is_one_way`, only the others receive nothing from `minority`.
  void partition(const std::vector<std::size_t>& minority, bool is_one_way) {
    for (std::size_t host = 0; host < 5; ++host) {
      if (std::ranges::count(minority, host) > 0) continue;
      for (const std::size_t isolated : minority)
        if (is_one_way)
          fleet_->hosts().partition_one_way(isolated, host);
        else
          fleet_->hosts().cut(isolated, host);
    }
  }

  void run_partition(const std::vector<std::size_t>& minority, bool is_one_way) {
    run_cut([&] { partition(minority, is_one_way); });
  }

  /// Calls `cut` while a job trains on five nodes, and heals the network after 8 s.
  void run_cut(const std::function<void()>& cut) {
    ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1200));
    cut();
    fleet_->watch(8s);
    pause_ = fleet_->longest_pause();
    for (std::size_t node = 0; node < 5; ++node)
      if (fleet_->log(node).find(": waits: ") != std::string::npos) waiting_.push_back(node);
    fleet_->hosts().heal();
    const auto healed_at = hosts::Fleet::Clock::now();
    EXPECT_TRUE(fleet_->wait_until_members_agree(5s));
    report("agreed_after_ms",
           std::to_string(
               std::chrono::duration_cast<Time>(hosts::Fleet::Clock::now() - healed_at).count()));
    expect_good_model(120s);
    report("longest_pause_in_the_partition_ms", std::to_string(pause_.count()));
    report_pause();
  }

  /// Expects that no range lacks updates that another one has, but for the pushes that the workers
  /// of two nodes had in flight: at most two workers a node, with one push each.
  void expect_equal_ranges() { EXPECT_LE(difference_of_updates(), 2U * 2U); }

  /// The longest pause of training during the partition.
  Time pause_{};
  /// The nodes that logged during the partition that they wait.
  std::vector<std::size_t> waiting_;
};

INSTANTIATE_TEST_SUITE_P(In, Partitions, testing::ValuesIn(job_modes), name_of);

TEST_P(Partitions, OfOneNodeStopTheOthersForSecondsOnly) {
  ASSERT_NO_FATAL_FAILURE(run_partition({4}, false));
  if (IsSkipped()) return;
  EXPECT_LE(pause_, 3s);
  EXPECT_EQ(waiting_, (std::vector<std::size_t>{4}));
}

TEST_P(Partitions, OfOneNodeInOneDirectionStopTheOthersForSecondsOnly) {
  ASSERT_NO_FATAL_FAILURE(run_partition({4}, true));
  if (IsSkipped()) return;
  EXPECT_LE(pause_, 3s);
}

/// Both of the two copies of a range may be in the minority; then all nodes wait.
TEST_P(Partitions, OfTwoNodesLoseNothing) {
  ASSERT_NO_FATAL_FAILURE(run_partition({3, 4}, false));
  if (IsSkipped()) return;
  for (const std::size_t node : {3U, 4U})
    EXPECT_EQ(std::ranges::count(waiting_, node), 1) << fleet_->log(node);
  expect_equal_ranges();
}

TEST_P(Partitions, OfTwoNodesInOneDirectionLoseNothing) {
  ASSERT_NO_FATAL_FAILURE(run_partition({3, 4}, true));
  if (IsSkipped()) return;
  expect_equal_ranges();
}

/// Nobody takes a node for dead, because the other nodes reach both of the pair.
TEST_P(Partitions, OfOnePairOfNodesStopTheOthersForSecondsOnly) {
  ASSERT_NO_FATAL_FAILURE(run_cut([&] { fleet_->hosts().cut(3, 4); }));
  if (IsSkipped()) return;
  EXPECT_LE(pause_, 4s);
}

}  // namespace
}  // namespace starling::program
