/// Tests allreduce:parts, in which the workers keep the state of the optimizer in shards: that two
/// workers on different nodes have the state of each range, that it is right, and that it survives
/// what happens to workers.
#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/exchange/allreduce/allreduce.hpp"
#include "starling/engine/exchange/collective/check.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

using collective::Rank;

Configuration configuration_of(const std::vector<NodeId>& nodes) {
  Configuration configuration;
  for (MemberId id = 0; id < nodes.size(); ++id)
    configuration.members.push_back({id, 1, true, true, nodes[id]});
  return configuration;
}

TEST(ShardsTest, PrimaryAndBackupAreOnDifferentNodes) {
  Random random{3};
  for (int i = 0; i < 500; ++i) {
    std::vector<NodeId> nodes(1 + random.below(12));
    for (NodeId& node : nodes) node = 1 + random.below(4);
    const OptimizerShards shards{configuration_of(nodes)};
    const bool has_others =
        std::ranges::any_of(nodes, [&](NodeId node) { return node != nodes.front(); });
    for (RangeId range = 0; range < 30; ++range) {
      ASSERT_LT(shards.backup(range), nodes.size());
      if (has_others) {
        EXPECT_NE(nodes[shards.primary(range)], nodes[shards.backup(range)]);
      }
      if (nodes.size() > 1) {
        EXPECT_NE(shards.primary(range), shards.backup(range));
      }
      EXPECT_EQ(primary_of(configuration_of(nodes), range), shards.primary(range));
    }
  }
}

TEST(ShardsTest, NodesWithAsManyWorkersAreBackupsOfAsManyShards) {
  for (const auto& nodes : {std::vector<NodeId>{0, 0, 0, 0}, {7}, {1, 1, 2, 2, 3, 3}, {5, 5, 5}}) {
    const OptimizerShards shards{configuration_of(nodes)};
    auto backups = shards.backups();
    std::ranges::sort(backups);
    for (Rank rank = 0; rank < backups.size(); ++rank) EXPECT_EQ(backups[rank], rank);
  }
}

TEST(ShardsTest, WorkersThatAreNotThereKeepNothing) {
  Configuration configuration = configuration_of({1, 1});
  for (Member& member : configuration.members) member.works = false;
  EXPECT_EQ(primary_of(configuration, 0), std::nullopt);
}

TEST(ShardsTest, ScheduleIsAnAllReduce) {
  for (std::size_t n = 2; n <= 64; ++n) {
    std::vector<NodeId> nodes(n);
    for (std::size_t i = 0; i < n; ++i) nodes[i] = i % 3;
    const auto schedule = sharded_schedule(OptimizerShards{configuration_of(nodes)}.backups());
    const auto valid = collective::check(schedule);
    EXPECT_TRUE(valid.ok()) << n << " workers: " << (valid.ok() ? "" : valid.error().message);
    EXPECT_EQ(collective::count_moves(schedule), n * (2 * n - 1));
  }
}

/// Adds updates to the values, and to the state of the optimizer.
class StateApplier final : public Applier {
 public:
  [[nodiscard]] std::size_t element_bytes() const noexcept override { return sizeof(double); }
  [[nodiscard]] std::size_t slot_count() const noexcept override { return 1; }
  [[nodiscard]] double weight(std::uint32_t, std::size_t) const noexcept override { return 1; }
  void apply(const Layout& layout, RangeId range, RangeValues& values, const Slice& update,
             double weight) const override {
    RangeValues state{.value = values.slots, .slots = {}};
    adding_->apply(layout, range, state, update, weight);
    values.slots = std::move(state.value);
    adding_->apply(layout, range, values, update, weight);
  }
  void apply_round(const Layout& layout, RangeId range, RangeValues& values,
                   std::span<const RoundPart> round, RoundScratch&) const override {
    for (const RoundPart& part : round)
      if (!part.update.empty()) apply(layout, range, values, part.update, 1);
  }
  [[nodiscard]] bool averages_rounds() const noexcept override { return false; }

 private:
  ApplierPtr adding_ = merge_applier<double>([](const MergeTarget&, auto value, auto update) {
    std::ranges::transform(value, update, value.begin(), std::plus<>{});
  });
};

class ShardedTest : public RoundsHarness<AllreduceExchange> {
 protected:
  ShardedTest() {
    applier_ = std::make_shared<StateApplier>();
    name_ = "allreduce:parts";
    start(5, 4);
  }

  [[nodiscard]] std::size_t state_size(MemberId id, RangeId range) {
    return exchange(id).state(range).slots.count;
  }
  /// Two workers have the state of each range, or the only one, and it is right.
  void check_at_end() override {
    for (RangeId range = 0; range < layout_->ranges.size(); ++range) {
      std::size_t holders = 0;
      std::size_t answers = 0;
      for (const Member& member : configuration_.members) {
        answers += exchange(member.id).answers_for(range);
        if (state_size(member.id, range) == 0) continue;
        ++holders;
        const RangeState state = exchange(member.id).state(range);
        EXPECT_EQ(state.slots.as<double>()[0], state.value.as<double>()[0]) << member.id;
      }
      // A worker that has just joined may have more than its shards have.
      EXPECT_GE(holders, std::min<std::size_t>(2, configuration_.members.size()));
      EXPECT_EQ(answers, 1U);
    }
  }
  [[nodiscard]] bool may_fail(int deaths, int gone) const override {
    return deaths >= 1 && gone >= 2 && failure_.find("the state of the optimizer of range") == 0;
  }
};

TEST_F(ShardedTest, EachWorkerHasTheStateOfItsShards) {
  for (Step step = 1; step <= 2; ++step) {
    for (MemberId id = 0; id < 4; ++id) write(id, step, std::pow(10, id));
    deliver_all();
  }
  for (MemberId id = 0; id < 4; ++id)
    for (RangeId range = 0; range < 5; ++range) {
      const bool is_primary = range % 4 == id;
      const bool is_backup = (range + 1) % 4 == id;
      EXPECT_EQ(state_size(id, range), is_primary || is_backup ? 1U : 0U) << id << ", " << range;
      EXPECT_EQ(exchange(id).answers_for(range), is_primary);
      EXPECT_EQ(sum(id, range), 2222);
      EXPECT_EQ(exchange(id).state(range).updates, 2U);
    }
  check_at_end();
}

/// With momentum, which is in the state, all is as if each worker had all of it.
TEST_F(ShardedTest, EqualsSumsWithoutShardsToTheBit) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.3, .momentum = 0.9}, .schedule = {}, .batch = 3});
  // With more than two workers, algorithms add in different orders.
  for (MemberId workers = 1; workers <= 2; ++workers)
    for (const std::string overlap : {"", ",overlap"}) {
      std::vector<std::vector<double>> copies;
      for (const std::string algorithm : {"tree", "parts"}) {
        name_ = "allreduce:" + algorithm + overlap;
        start(5, workers);
        for (Step step = 1; step <= 6; ++step) {
          for (MemberId id = 0; id < workers; ++id)
            write(id, step, std::sin(static_cast<double>(7 * step + id)), 3);
          deliver_all();
        }
        for (MemberId id = 0; id < workers; ++id) end(id, 6);
        deliver_all();
        EXPECT_EQ(exchange(0).synced_step(), 6U);
        expect_equal_copies();
        auto& copy = copies.emplace_back();
        for (RangeId range = 0; range < 5; ++range) copy.push_back(sum(0, range));
      }
      EXPECT_EQ(copies[0], copies[1]) << workers << " workers" << overlap;
    }
}

/// The samples of a step are a power of 2, so no number is rounded and no order of sums matters.
TEST_F(ShardedTest, EqualsSumsWithoutShardsWithManyWorkers) {
  constexpr std::uint32_t samples = 16;
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.25, .momentum = 0.5}, .schedule = {}, .batch = samples});
  for (MemberId workers = 3; workers <= 9; ++workers) {
    std::vector<std::vector<double>> copies;
    for (const char* name : {"allreduce:ring", "allreduce:parts", "allreduce:ring,buckets=4",
                             "allreduce:parts,buckets=1", "allreduce:parts,buckets=5"}) {
      name_ = name;
      start(13, workers);
      for (Step step = 1; step <= 5; ++step) {
        for (MemberId id = 0; id < workers; ++id)
          write(id, step, static_cast<double>(7 * step % 5 + id),
                id == 0 ? samples - workers + 1 : 1,
                id % 3 == 1 ? std::optional{RangeId{2}} : std::nullopt);
        deliver_all();
      }
      expect_equal_copies();
      for (RangeId range = 0; range < 13; ++range) {
        EXPECT_EQ(exchange(workers - 1).state(range).updates, 5U);
        EXPECT_EQ(exchange(workers - 1).state(range).samples, 5U * samples);
      }
      auto& copy = copies.emplace_back();
      for (RangeId range = 0; range < 13; ++range) copy.push_back(sum(workers - 1, range));
    }
    for (const auto& copy : copies) EXPECT_EQ(copies[0], copy) << workers << " workers";
  }
}

/// Some workers have applied a complete sum and others await their next update, as in a pause.
TEST_F(ShardedTest, StatesOfAllRangesAreOfOneRoundIfRoundsOverlap) {
  name_ = "allreduce:parts,overlap";
  start(5, 4);
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  write(0, 2);
  deliver_all();
  EXPECT_EQ(exchange(0).synced_step(), 1U);
  EXPECT_EQ(exchange(1).synced_step(), 0U);
  for (RangeId range = 0; range < 5; ++range) {
    const MemberId primary = range % 4;
    ASSERT_TRUE(exchange(primary).answers_for(range));
    const RangeState state = exchange(primary).state(range);
    EXPECT_EQ(state.round, 1U) << range;
    EXPECT_EQ(state.value.as<double>()[0], 4);
    EXPECT_EQ(state.slots.as<double>()[0], 4);
    EXPECT_EQ(state.samples, 4U);
    EXPECT_EQ(state.ledger.at(2).step, 1U);
  }
}

/// All have applied round 1, and the sum of round 2 waits for their next steps.
TEST_F(ShardedTest, SnapshotOfARoundHasNotTheSumThatWaits) {
  name_ = "allreduce:parts,overlap";
  start(5, 4);
  for (Step step = 1; step <= 2; ++step)
    for (MemberId id = 0; id < 4; ++id) write(id, step);
  deliver_all();
  std::size_t observed = 0;
  for (MemberId id = 0; id < 4; ++id) {
    ASSERT_EQ(exchange(id).synced_step(), 1U);
    ExchangeEffects<AllreduceContext::Messages> effects;
    exchange(id).on(Context{time_, random_, effects}, Snapshot{9, 1});
    for (const auto& effect : effects) {
      const RangeState& state = *std::get<ObservedState>(effect).state;
      ++observed;
      EXPECT_EQ(state.round, 1U);
      EXPECT_EQ(state.value.as<double>()[0], 4) << state.range;
      EXPECT_EQ(state.slots.as<double>()[0], 4) << state.range;
      EXPECT_EQ(state.samples, 4U);
      EXPECT_EQ(state.ledger.at(2).step, 1U);
    }
  }
  EXPECT_EQ(observed, 5U);
}

TEST_F(ShardedTest, WorkerLeavesOnlyWhenOthersHaveItsState) {
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  deliver_all();
  for (const MemberId id : {1U, 2U}) end(id, 1);
  for (const MemberId id : {0U, 3U}) write(id, 2);
  deliver_all();
  EXPECT_TRUE(exchange(1).may_leave());
  EXPECT_TRUE(exchange(2).may_leave());
  remove(1);
  adopt_all();
  EXPECT_FALSE(exchange(2).may_leave()) << "it has the only state of range 1";
  deliver_all();
  EXPECT_FALSE(exchange(2).may_leave()) << "the others do not say that they have got it";
  for (const MemberId id : {0U, 3U}) write(id, 3);
  deliver_all();
  EXPECT_TRUE(exchange(2).may_leave());
  remove(2);
  adopt_all();
  deliver_all();
  EXPECT_EQ(failure_, "");
  check_at_end();
}

TEST_F(ShardedTest, StateSurvivesTheDeathOfAnyWorkerAtAnyMessage) {
  for (MemberId dead = 0; dead < 4; ++dead)
    for (int messages = 0; messages < 60; ++messages) {
      SCOPED_TRACE(std::to_string(dead) + " dies after " + std::to_string(messages));
      random_ = Random{static_cast<std::uint64_t>(messages)};
      start(5, 4);
      written_.clear();
      for (MemberId id = 0; id < 4; ++id) write(id, 1);
      deliver_all();
      for (MemberId id = 0; id < 4; ++id) write(id, 2);
      for (int i = 0; i < messages && !in_flight_.empty(); ++i) deliver_one();
      remove(dead);
      adopt_all();
      deliver_all();
      ASSERT_EQ(failure_, "");
      for (const Member& member : configuration_.members) {
        EXPECT_EQ(exchange(member.id).synced_step(), 2U);
        EXPECT_EQ(written_[member.id], 2);
        EXPECT_GE(sum(member.id), 7);
        EXPECT_LE(sum(member.id), 8);
        write(member.id, 3);
      }
      deliver_all();
      expect_equal_copies();
      check_at_end();
    }
}

TEST_F(ShardedTest, JoinerGetsTheStateOfItsShards) {
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  deliver_all();
  add(9);
  adopt_all();
  enter(9);
  deliver_all();
  EXPECT_EQ(state_size(9, 4), 1U) << "it keeps range 4";
  EXPECT_EQ(state_size(9, 3), 1U) << "it is the backup of range 3";
  EXPECT_EQ(state_size(9, 0), 0U);
  for (const Member& member : configuration_.members) write(member.id, 2);
  deliver_all();
  EXPECT_EQ(sum(9), 9);
  check_at_end();
}

TEST_F(ShardedTest, JobFailsIfBothWorkersWithAStateDieAtOnce) {
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  deliver_all();
  remove(1);
  remove(2);
  adopt_all();
  deliver_all();
  EXPECT_EQ(failure_,
            "the state of the optimizer of range 1 is lost, because both workers that held it left "
            "or died before another worker had received it; valid: start from a checkpoint");
}

TEST_F(ShardedTest, OptimizerWithoutStateLosesNothingIfManyDieAtOnce) {
  applier_ =
      merge_applier<double>([](const auto&, auto value, auto update) { value[0] += update[0]; });
  start(5, 4);
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  deliver_all();
  for (const MemberId dead : {1U, 2U, 3U}) remove(dead);
  adopt_all();
  write(0, 2);
  deliver_all();
  EXPECT_EQ(failure_, "");
  EXPECT_EQ(sum(0), 5);
}

TEST_F(ShardedTest, StateIsRightWhateverHappensToWorkers) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    return std::pair{seed % 2 == 0 ? "allreduce:parts" : "allreduce:parts,overlap", Step{1}};
  });
}

TEST_F(ShardedTest, StateIsRightIfPartsComeEarly) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    return std::pair{"allreduce:parts,buckets=" + std::to_string(2 + seed % 2), Step{1}};
  });
}

TEST_F(ShardedTest, RefusesReportsThatNoCorrectMemberSends) {
  const ExchangeScope scope{{configuration_, 1, 8}, *layout_, sizeof(double)};
  EXPECT_TRUE(is_valid(scope, RoundReport{1, 4, {0, 4}, {1}}));
  EXPECT_FALSE(is_valid(scope, RoundReport{1, 4, {0, 5}, {}}));
  EXPECT_FALSE(is_valid(scope, RoundReport{1, 4, {2, 2}, {}}));
  EXPECT_FALSE(is_valid(scope, RoundReport{1, 4, {}, {3, 1}}));
  EXPECT_FALSE(is_valid(scope, CatchUpRequest{1, 0, barrier::finished, true}));
}

}  // namespace
}  // namespace starling::core
