/// Nodes on hosts of their own that die, freeze, join and leave while they train.
#include <algorithm>

#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class Deaths : public Drill {};

INSTANTIATE_TEST_SUITE_P(In, Deaths, testing::ValuesIn(job_modes), name_of);

TEST_P(Deaths, OfNodesAreRecoveredFromInEachOfFourRounds) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  const unsigned seed = draw_seed();
  report("seed", std::to_string(seed));
  std::mt19937 random{seed};
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 2000));
  std::vector<std::size_t> node_on_host{0, 1, 2, 3, 4};
  for (int round = 0; round < 4; ++round) {
    fleet_->watch(Time{500 + random() % 2000});
    ASSERT_TRUE(fleet_->is_training()) << "in round " << round;
    const std::size_t host = random() % 5;
    const std::size_t killed = node_on_host[host];
    fleet_->kill(killed);
    fleet_->watch(3s);
    node_on_host[host] = fleet_->start(host);
    fleet_->watch(3s);
    report_death(round, killed);
  }
  expect_good_model_without_long_pause();
  // A node has at most two workers, and each may have had one push in flight.
  EXPECT_LE(difference_of_updates(), 4U * 2U);
}

/// Kills nodes that hold ranges, until 3 of 5 nodes are left. Starts no node in place of a killed
/// one.
class OwnerDeaths : public Deaths {
 protected:
  /// Kills `count` of the nodes that hold ranges. Expects that within 10 s the other nodes hold
  /// `replication_factor` replicas of each range again.
  void kill_owners(std::size_t count, std::size_t replication_factor) {
    auto owners = fleet_->owners();
    ASSERT_GE(owners.size(), replication_factor);
    std::ranges::shuffle(owners, random_);
    const auto nodes_before = fleet_->awake().size();
    const auto killed_at = Clock::now();
    for (std::size_t i = 0; i < count; ++i) fleet_->kill(owners[i]);
    const bool restored = fleet_->watch(20s, [&] {
      return fleet_->status_of(fleet_->awake().front())->live() == nodes_before - count &&
             fleet_->has_complete_replicas(replication_factor);
    });
    const auto took = std::chrono::duration_cast<Time>(Clock::now() - killed_at);
    EXPECT_TRUE(restored && fleet_->is_training());
    EXPECT_LE(took, 10s);
    report("restored_ms_" + std::to_string(owners.front()), std::to_string(took.count()));
  }
  /// Expects that ranges differ only by the pushes that killed workers had in flight.
  void expect_good_model_and_equal_ranges() {
    expect_good_model_without_long_pause();
    // A node has at most two workers, and each may have had one push in flight.
    EXPECT_LE(difference_of_updates(), 2U * 2U);
  }

  const unsigned seed_ = draw_seed();
  std::mt19937 random_{seed_};
  using Clock = hosts::Fleet::Clock;
};

INSTANTIATE_TEST_SUITE_P(In, OwnerDeaths, testing::ValuesIn(job_modes), name_of);

TEST_P(OwnerDeaths, OfTwoNodesOneAfterAnotherAreRecoveredFrom) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  report("seed", std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 900));
  for (int death = 0; death < 2; ++death) {
    fleet_->watch(Time{random_() % 2000});
    ASSERT_NO_FATAL_FAILURE(kill_owners(1, 2));
  }
  expect_good_model_and_equal_ranges();
}

TEST_P(OwnerDeaths, OfTwoNodesAtOnceAreRecoveredFromWithThreeCopies) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  report("seed", std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 700, "--copies 3"));
  fleet_->watch(Time{random_() % 2000});
  ASSERT_NO_FATAL_FAILURE(kill_owners(2, 3));
  expect_good_model_and_equal_ranges();
}

/// Deaths of the node that has the coordinator, in central mode.
class CoordinatorDeaths : public Drill {
 protected:
  /// Returns the number of the node that has the coordinator.
  std::size_t coordinator_node() {
    const auto nodes = fleet_->awake();
    for (const std::size_t node : nodes)
      if (const auto status = fleet_->status_of(node); status && status->coordinator)
        if (status->steps.contains(*status->coordinator)) return node;
    ADD_FAILURE() << "no node has the coordinator";
    return nodes.front();
  }
};

INSTANTIATE_TEST_SUITE_P(In, CoordinatorDeaths, testing::Values(job_modes[0], job_modes[1]),
                         name_of);

TEST_P(CoordinatorDeaths, OfTheCoordinatorAndOfItsSuccessorsAreRecoveredFrom) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(5));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1000));
  for (int round = 0; round < 3; ++round) {
    const std::size_t killed = coordinator_node();
    fleet_->kill(killed);
    fleet_->watch(4s);
    EXPECT_TRUE(fleet_->is_training()) << "in round " << round;
    fleet_->start(fleet_->host_of(killed));
    fleet_->watch(3s);
    report_death(round, killed);
  }
  expect_good_model_without_long_pause();
}

TEST_P(CoordinatorDeaths, AreNotNeededForTheCoordinatorToMove) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 600));
  EXPECT_EQ(coordinator_node(), 1U) << "the node to which the job was submitted";
  EXPECT_EQ(fleet_->leave(1), 0);
  EXPECT_TRUE(fleet_->is_training());
  EXPECT_NE(coordinator_node(), 1U);
  expect_good_model_without_long_pause();
}

TEST_P(Deaths, DeclaredOfAFrozenNodeAreUndoneWhenItThaws) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1200));
  fleet_->freeze(2);
  fleet_->watch(10s);
  EXPECT_EQ(fleet_->status_of(0)->states["n2"], "dead");
  fleet_->thaw(2);
  EXPECT_TRUE(fleet_->wait_until_members_agree(5s));
  ASSERT_TRUE(fleet_->watch(30s, [&] {
    return fleet_->log(2).find("declared dead; joining again") != std::string::npos;
  }));
  // The members on n2 join again in new incarnations, and train.
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto status = fleet_->status_of(2);
    return status && status->text.find(", running, on n2") != std::string::npos;
  }));
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model_without_long_pause();
}

TEST_P(Deaths, AreNotNeededForNodesToJoinAndLeaveATrainingJob) {
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1000));
  const std::size_t joining = fleet_->start(0);
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto status = fleet_->status_of(joining);
    return status && status->text.find(", running") != std::string::npos;
  }));
  const auto asked_at = hosts::Fleet::Clock::now();
  EXPECT_EQ(fleet_->leave(2), 0);
  report("left_after_ms",
         std::to_string(
             std::chrono::duration_cast<Time>(hosts::Fleet::Clock::now() - asked_at).count()));
  EXPECT_EQ(fleet_->status_of(0)->states["n2"], "left");
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model_without_long_pause();
}

/// Deaths of nodes in a job that keeps one replica of each range.
class UnreplicatedDeaths : public Drill {};

TEST_F(UnreplicatedDeaths, OfAnOnlyOwnerEndTheJobWithoutAModel) {
  ASSERT_NO_FATAL_FAILURE(start_on_loopback(3));
  ASSERT_NO_FATAL_FAILURE(submit(job_modes[3], 2000, "--copies 1"));
  // n2 is the only owner of some ranges.
  fleet_->kill(2);
  fleet_->watch(60s);
  ASSERT_FALSE(fleet_->is_training());
  const ProgramResult ran = fleet_->finish();
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("lost all its owners"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(saved_model()));
}

}  // namespace
}  // namespace starling::program
