/// Nodes that die, stand still, come and go while they train, on hosts of their own.
#include <algorithm>

#include "tests/tools/cluster/drills.hpp"

namespace starling::program {
namespace {

class Deaths : public Drill {};

INSTANTIATE_TEST_SUITE_P(In, Deaths, testing::ValuesIn(ways), name_of);

/// STARLING_DRILL_SEED chooses which nodes to kill, and when.
unsigned draw_seed() {
  const char* chosen = std::getenv("STARLING_DRILL_SEED");
  return chosen != nullptr ? static_cast<unsigned>(std::stoul(chosen)) : std::random_device{}();
}

TEST_P(Deaths, OfAnyNodeAreMadeUpForRoundAfterRound) {
  ASSERT_NO_FATAL_FAILURE(begin(5));
  if (IsSkipped()) return;
  const unsigned seed = draw_seed();
  tell("seed", std::to_string(seed));
  std::mt19937 random{seed};
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 2000));
  std::vector<std::size_t> on_host{0, 1, 2, 3, 4};
  for (int round = 0; round < 4; ++round) {
    fleet_->watch(Time{500 + random() % 2000});
    ASSERT_TRUE(fleet_->is_training()) << "in round " << round;
    const std::size_t host = random() % 5;
    const std::size_t killed = on_host[host];
    fleet_->kill(killed);
    fleet_->watch(3s);
    on_host[host] = fleet_->start(host);
    fleet_->watch(3s);
    tell_death(round, killed);
  }
  expect_good_model_without_long_pause();
  // At most two workers a node.
  EXPECT_LE(updates_apart(), 4U * 2U);
}

/// Kills nodes that hold ranges, until 3 of 5 nodes are left; none comes instead.
class OwnerDeaths : public Deaths {
 protected:
  /// Kills `count` of the nodes that hold ranges, and waits until the others hold `copies` replicas
  /// again.
  void kill_owners(std::size_t count, std::size_t copies) {
    auto owners = fleet_->owners();
    ASSERT_GE(owners.size(), copies);
    std::ranges::shuffle(owners, random_);
    const auto lived = fleet_->awake().size();
    const auto killed = Clock::now();
    for (std::size_t i = 0; i < count; ++i) fleet_->kill(owners[i]);
    const bool restored = fleet_->watch(20s, [&] {
      return fleet_->ask(fleet_->awake().front())->live() == lived - count &&
             fleet_->holds_copies(copies);
    });
    const auto took = std::chrono::duration_cast<Time>(Clock::now() - killed);
    EXPECT_TRUE(restored && fleet_->is_training());
    EXPECT_LE(took, 10s);
    tell("restored_ms_" + std::to_string(owners.front()), std::to_string(took.count()));
  }
  void expect_all_whole() {
    expect_good_model_without_long_pause();
    // At most two workers a node.
    EXPECT_LE(updates_apart(), 2U * 2U);
  }

  const unsigned seed_ = draw_seed();
  std::mt19937 random_{seed_};
  using Clock = hosts::Fleet::Clock;
};

INSTANTIATE_TEST_SUITE_P(In, OwnerDeaths, testing::ValuesIn(ways), name_of);

TEST_P(OwnerDeaths, OneAfterAnotherAreMadeUpForByTheOthers) {
  ASSERT_NO_FATAL_FAILURE(begin(5));
  if (IsSkipped()) return;
  tell("seed", std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 900));
  for (int death = 0; death < 2; ++death) {
    fleet_->watch(Time{random_() % 2000});
    ASSERT_NO_FATAL_FAILURE(kill_owners(1, 2));
  }
  expect_all_whole();
}

TEST_P(OwnerDeaths, TwoAtOnceAreMadeUpForWhereThereAreThreeCopies) {
  ASSERT_NO_FATAL_FAILURE(begin(5));
  if (IsSkipped()) return;
  tell("seed", std::to_string(seed_));
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 700, "--copies 3"));
  fleet_->watch(Time{random_() % 2000});
  ASSERT_NO_FATAL_FAILURE(kill_owners(2, 3));
  expect_all_whole();
}

/// Deaths of the coordinator's node, in the modes that have a coordinator.
class CoordinatorDeaths : public Drill {
 protected:
  /// The node that has the coordinator.
  std::size_t keeper() {
    const auto nodes = fleet_->awake();
    for (const std::size_t node : nodes)
      if (const auto seen = fleet_->ask(node); seen && seen->coordinator)
        if (seen->steps.contains(*seen->coordinator)) return node;
    ADD_FAILURE() << "nobody has the coordinator";
    return nodes.front();
  }
};

INSTANTIATE_TEST_SUITE_P(In, CoordinatorDeaths, testing::Values(ways[0], ways[1]), name_of);

TEST_P(CoordinatorDeaths, AreMadeUpForAsThoseOfItsSuccessorsAre) {
  ASSERT_NO_FATAL_FAILURE(begin(5));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1000));
  for (int round = 0; round < 3; ++round) {
    const std::size_t killed = keeper();
    fleet_->kill(killed);
    fleet_->watch(4s);
    EXPECT_TRUE(fleet_->is_training()) << "in round " << round;
    fleet_->start(fleet_->host_of(killed));
    fleet_->watch(3s);
    tell_death(round, killed);
  }
  expect_good_model_without_long_pause();
}

TEST_P(CoordinatorDeaths, AreNotNeededForItToMove) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 600));
  EXPECT_EQ(keeper(), 1U) << "where it was submitted to";
  EXPECT_EQ(fleet_->leave(1), 0);
  EXPECT_TRUE(fleet_->is_training());
  EXPECT_NE(keeper(), 1U);
  expect_good_model_without_long_pause();
}

TEST_P(Deaths, ThatWereNoneAreTakenBack) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1200));
  fleet_->freeze(2);
  fleet_->watch(10s);
  EXPECT_EQ(fleet_->ask(0)->states["n2"], "dead");
  fleet_->thaw(2);
  EXPECT_TRUE(fleet_->agree(5s));
  ASSERT_TRUE(fleet_->watch(30s, [&] {
    return fleet_->log(2).find("declared dead; joining again") != std::string::npos;
  }));
  // Its members come back in new incarnations, and work.
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto seen = fleet_->ask(2);
    return seen && seen->text.find(", running, on n2") != std::string::npos;
  }));
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model_without_long_pause();
}

TEST_P(Deaths, AreNotNeededToLeaveAndJoinWorksMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(begin(3));
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(submit(GetParam(), 1000));
  const std::size_t joiner = fleet_->start(0);
  EXPECT_TRUE(fleet_->watch(10s, [&] {
    const auto seen = fleet_->ask(joiner);
    return seen && seen->text.find(", running") != std::string::npos;
  }));
  const auto began = hosts::Fleet::Clock::now();
  EXPECT_EQ(fleet_->leave(2), 0);
  tell(
      "left_after_ms",
      std::to_string(std::chrono::duration_cast<Time>(hosts::Fleet::Clock::now() - began).count()));
  EXPECT_EQ(fleet_->ask(0)->states["n2"], "left");
  EXPECT_TRUE(fleet_->is_training());
  expect_good_model_without_long_pause();
}

class UncoveredDeaths : public Drill {};

TEST_F(UncoveredDeaths, EndTheJobRatherThanWithAWrongModel) {
  ASSERT_NO_FATAL_FAILURE(begin_here(3));
  ASSERT_NO_FATAL_FAILURE(submit(ways[3], 2000, "--copies 1"));
  // The only owner of some ranges.
  fleet_->kill(2);
  fleet_->watch(60s);
  ASSERT_FALSE(fleet_->is_training());
  const Ran ran = fleet_->finish();
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_NE(ran.err.find("lost all its owners"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(saved()));
}

}  // namespace
}  // namespace starling::program
