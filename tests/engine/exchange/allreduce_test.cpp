/// Tests the allreduce exchange message by message: that each round is the sum of all updates on
/// every worker, to the last bit, and what happens when workers join, end and die.
#include "starling/engine/exchange/allreduce/allreduce.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

using AllreduceTest = RoundsHarness<AllreduceExchange>;

TEST_F(AllreduceTest, StepCountsOnceAllHaveWritten) {
  write(0, 1);
  write(1, 1);
  deliver_all();
  EXPECT_EQ(written_[0], 0);
  EXPECT_EQ(sum(0), 0);
  write(2, 1);
  deliver_all();
  for (const MemberId id : {0U, 1U, 2U}) {
    EXPECT_EQ(written_[id], 1);
    EXPECT_EQ(sum(id), 3);
    EXPECT_EQ(exchange(id).synced_step(), 1U);
    EXPECT_EQ(exchange(id).progress().size(), 3U);
  }
  read(1, 1);
  EXPECT_EQ(reads_[1], 3);
}

/// Rounds like those of the owners in central mode, for each algorithm and 1 to 9 workers.
TEST_F(AllreduceTest, EachRoundAppliesTheMeanOfAllGradientsOnEveryWorker) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.3, .momentum = 0.5}, .schedule = {}, .batch = 7});
  for (const std::string_view algorithm : AllreduceExchange::arguments)
    for (MemberId workers = 1; workers <= 9; ++workers) {
      if (algorithm == "overlap") continue;
      SCOPED_TRACE(std::string{algorithm} + ", " + std::to_string(workers) + " workers");
      name_ = "allreduce:" + std::string{algorithm} + (workers % 3 == 0 ? ",buckets=3" : "");
      written_.clear();
      start(5, workers);
      std::vector<RangeValues> owned;
      for (const RangeState& state : initial_states())
        owned.push_back(values_of(*layout_, *applier_, state));
      RoundScratch scratch;
      for (Step step = 1; step <= 3; ++step) {
        std::vector<std::vector<RoundPart>> round(5);
        for (MemberId id = 0; id < workers; ++id) {
          const double value = std::sin(static_cast<double>(10 * step + id));
          const auto samples = static_cast<std::uint32_t>(random_.below(100'000));
          const std::optional<RangeId> only =
              id % 3 == 1 ? std::optional{RangeId{2}} : std::nullopt;
          write(id, step, value, samples, only);
          auto one = Buffer::make<double>(1);
          one->as<double>()[0] = value;
          for (RangeId r = 0; r < 5; ++r)
            round[r].push_back({only && *only != r ? Slice{} : Slice{one, 0, 1, nullptr}, samples});
          for (std::uint64_t i = random_.below(5); i > 0 && !in_flight_.empty(); --i) deliver_one();
        }
        deliver_all();
        std::uint64_t samples = 0;
        for (const RoundPart& part : round[0]) samples += part.samples;
        for (RangeId r = 0; r < 5; ++r) {
          applier_->apply_round(*layout_, r, owned[r], round[r], scratch);
          owned[r].samples += samples;
          EXPECT_NEAR(sum(0, r), owned[r].value->as<double>()[0], 1e-12);
          EXPECT_EQ(exchange(0).state(r).samples, owned[r].samples);
          EXPECT_EQ(exchange(0).state(r).updates, owned[r].updates);
        }
        expect_equal_copies();
        for (MemberId id = 0; id < workers; ++id) EXPECT_EQ(written_[id], static_cast<int>(step));
      }
    }
}

TEST_F(AllreduceTest, UpdateOfNoSamplesChangesNothing) {
  applier_ = gradient_applier<double>({.optimizer = models::Sgd{.lr = -1}, .schedule = {}});
  start(1, 2);
  write(0, 1, std::nan(""), 0);
  write(1, 1, 4, 3);
  deliver_all();
  EXPECT_EQ(sum(0), 4);
  write(0, 2, std::nan(""), 0);
  write(1, 2, std::nan(""), 0);
  deliver_all();
  EXPECT_EQ(sum(0), 4);
  EXPECT_EQ(written_[1], 2);
}

TEST_F(AllreduceTest, WorkerThatHasEndedTakesPartWithoutUpdate) {
  write(0, 1);
  write(1, 1);
  end(2, 0);
  deliver_all();
  EXPECT_EQ(sum(2), 2);
  EXPECT_EQ(written_[0], 1);
  end(0, 1);
  end(1, 1);
  deliver_all();
  EXPECT_EQ(exchange(0).synced_step(), 1U) << "no round without an update";
  EXPECT_EQ(sum(1), 2);
}

TEST_F(AllreduceTest, DeathOfAWorkerRepeatsTheRoundWithoutIt) {
  name_ = "allreduce:ring";
  start(1, 3);
  write(0, 1, 1);
  write(1, 1, 10);
  deliver_all();
  remove(2);
  adopt_all();
  deliver_all();
  EXPECT_EQ(sum(0), 11);
  EXPECT_EQ(sum(1), 11);
  EXPECT_EQ(written_[0], 1);
}

/// Worker 2 has completed the round when worker 1 dies, and worker 0 has not.
TEST_F(AllreduceTest, WorkerThatIsARoundBehindGetsTheRound) {
  for (bool is_source_dead : {false, true}) {
    written_.clear();
    name_ = "allreduce:tree";
    start(3, 4);
    for (MemberId id = 0; id < 4; ++id) write(id, 1, std::pow(10, id));
    while (exchange(3).synced_step() == 0 && !in_flight_.empty()) {
      // Nothing but what worker 0 awaits is left in the end.
      std::erase_if(in_flight_, [&](const InFlight& message) {
        const auto* piece = std::get_if<SumPiece>(&message.sent.message);
        return piece != nullptr && piece->move_round >= 2 && message.sent.to != 2 &&
               message.sent.to != 3;
      });
      deliver_one();
    }
    ASSERT_EQ(exchange(3).synced_step(), 1U);
    ASSERT_EQ(exchange(1).synced_step(), 0U);
    remove(is_source_dead ? 3 : 2);
    if (is_source_dead && exchange(2).synced_step() == 1) remove(2);
    if (is_source_dead && exchange(0).synced_step() == 1) remove(0);
    adopt_all();
    deliver_all();
    for (const Member& member : configuration_.members) {
      EXPECT_EQ(exchange(member.id).synced_step(), 1U);
      EXPECT_EQ(sum(member.id, 2), is_source_dead ? 10 : 1111);
      EXPECT_EQ(written_[member.id], 1);
    }
  }
}

TEST_F(AllreduceTest, JoinerGetsTheModelAndBeginsWithTheNextRound) {
  window_ = 2;
  start(3, 2);
  for (Step step = 1; step <= 2; ++step) {
    write(0, step);
    write(1, step);
    deliver_all();
  }
  write(0, 3);
  add(7);
  adopt_all();
  enter(7);
  EXPECT_FALSE(exchange(7).has_copy(0));
  deliver_all();
  EXPECT_EQ(exchange(7).synced_step(), 2U);
  EXPECT_EQ(exchange(7).full_ranges().size(), 3U);
  EXPECT_EQ(exchange(7).full_ranges_version(), 1U);
  EXPECT_EQ(written_[7], 1) << "it has entered";
  write(1, 3);
  deliver_all();
  EXPECT_EQ(written_[0], 2) << "the round awaits the joiner";
  write(7, 3);
  deliver_all();
  EXPECT_EQ(written_[0], 3);
  EXPECT_EQ(sum(7, 1), 7);
  expect_equal_copies();
}

TEST_F(AllreduceTest, JobOfJoinersOnlyFails) {
  start(1, 1);
  add(5);
  remove(0);
  adopt(5);
  EXPECT_NE(failure_.find("no worker has a copy of the parameters"), std::string::npos);
}

TEST_F(AllreduceTest, CopiesAgreeInEachRoundWhateverHappensToWorkers) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    const auto& arguments = AllreduceExchange::arguments;
    return std::pair{"allreduce:" + std::string{arguments[seed % arguments.size()]}, Step{1}};
  });
}

TEST_F(AllreduceTest, CopiesAgreeInEachRoundIfPartsComeEarly) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    const auto& arguments = AllreduceExchange::arguments;
    return std::pair{"allreduce:" + std::string{arguments[seed % (arguments.size() - 1)]} +
                         ",buckets=" + std::to_string(2 + seed % 3),
                     Step{1}};
  });
}

TEST_F(AllreduceTest, CopiesAgreeInEachRoundIfRoundsOverlapWithSteps) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    return std::pair{seed % 2 == 0 ? "allreduce:overlap" : "allreduce:ring,overlap", Step{1}};
  });
}

TEST_F(AllreduceTest, OverlappedStepCountsOnceTheRoundBeforeIsComplete) {
  name_ = "allreduce:overlap";
  start(1, 2);
  write(0, 1);
  EXPECT_EQ(written_[0], 1) << "the first step waits for nothing";
  write(0, 2);
  deliver_all();
  EXPECT_EQ(written_[0], 1) << "worker 1 has not written its first step";
  write(1, 1);
  deliver_all();
  EXPECT_EQ(written_[0], 2) << "the first round is complete";
  EXPECT_EQ(exchange(0).synced_step(), 1U);
  EXPECT_EQ(exchange(1).synced_step(), 0U) << "worker 1 makes its second step with the copy before";
  read(1, 1);
  EXPECT_EQ(reads_[1], 0);
  write(1, 2);
  deliver_all();
  read(1, 2);
  EXPECT_EQ(reads_[1], 2);
  for (const MemberId id : {0U, 1U}) end(id, 2);
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(exchange(id).synced_step(), 2U);
    EXPECT_EQ(sum(id), 4);
    EXPECT_TRUE(exchange(id).may_leave());
  }
}

/// HPSGD (arXiv 2009.02701): w(k + 1) = w(k) - lr mean(G(k - 1)), however fast the sum is.
TEST_F(AllreduceTest, OverlapIsSgdThatIsOneRoundStale) {
  constexpr double lr = 0.3;
  const auto gradient = [](MemberId id, double w) { return (1.0 + id) * (w - id); };
  applier_ = gradient_applier<double>({.optimizer = models::Sgd{.lr = lr}, .schedule = {}});
  for (const bool is_instant : {true, false}) {
    name_ = "allreduce:overlap";
    written_.clear();
    start(1, 3);
    double before = 0;  // w(k - 2)
    double now = 0;     // w(k - 1)
    for (Step step = 1; step <= 40; ++step) {
      for (const MemberId id : {0U, 1U, 2U}) {
        read(id, step - 1);
        EXPECT_NEAR(reads_[id], before, 1e-12) << step;
        write(id, step, gradient(id, reads_[id]));
        if (is_instant) deliver_all();
      }
      deliver_all();
      double mean = 0;
      for (const MemberId id : {0U, 1U, 2U}) mean += gradient(id, before) / 3;
      if (step == 1) {
        now = before - lr * mean;
        continue;  // step 2 reads the initial values, too
      }
      before = std::exchange(now, now - lr * mean);
    }
    EXPECT_NEAR(now, 8.0 / 6, 1e-3) << "the minimum";
  }
}

TEST_F(AllreduceTest, UpdateThatOverlapsIsSummedAgainAfterADeath) {
  name_ = "allreduce:ring,overlap";
  start(1, 3);
  for (const MemberId id : {0U, 1U}) {
    write(id, 1, id + 1.0);
    write(id, 2, 10);
  }
  deliver_all();
  remove(2);
  adopt_all();
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(written_[id], 2);
    end(id, 2);
  }
  deliver_all();
  EXPECT_EQ(sum(1), 23);
}

/// All have the sum of the first step when a worker dies, and make their second step.
TEST_F(AllreduceTest, CompleteSumIsAppliedIfAWorkerDiesMeanwhile) {
  name_ = "allreduce:overlap";
  start(1, 3);
  for (const MemberId id : {0U, 1U, 2U}) write(id, 1, id + 1.0);
  deliver_all();
  EXPECT_EQ(exchange(0).synced_step(), 0U) << "the second step reads the copy before";
  remove(2);
  adopt_all();
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(exchange(id).synced_step(), 1U);
    EXPECT_EQ(sum(id), 6) << "with the update of worker 2";
    write(id, 2, 10);
  }
  for (const MemberId id : {0U, 1U}) end(id, 2);
  deliver_all();
  EXPECT_EQ(sum(0), 26);
}

TEST_F(AllreduceTest, AnotherAlgorithmSumsIfADeathLeavesTooFewWorkers) {
  name_ = "allreduce:bcube:k=2";
  start(1, 4);
  for (const MemberId id : {0U, 1U, 2U}) write(id, 1);
  remove(3);
  adopt_all();
  deliver_all();
  EXPECT_EQ(failure_, "");
  EXPECT_EQ(sum(0), 3);
}

TEST_F(AllreduceTest, AnswersSnapshotsOfARound) {
  std::vector<RangeState> observed;
  const auto request = [&](Step round) {
    ExchangeEffects<AllreduceContext::Messages> effects;
    exchange(0).on(Context{time_, random_, effects}, Snapshot{9, round});
    for (auto& effect : effects)
      if (auto* state = std::get_if<ObservedState>(&effect)) observed.push_back(*state->state);
  };
  request(0);
  ASSERT_EQ(observed.size(), 1U);
  EXPECT_EQ(observed[0].round, 0U);
  for (MemberId id = 0; id < 3; ++id) write(id, 1);
  deliver_all();
  request(1);
  ASSERT_EQ(observed.size(), 2U);
  EXPECT_EQ(observed[1].round, 1U);
  EXPECT_EQ(observed[1].value.as<double>()[0], 3);
  EXPECT_EQ(observed[1].ledger.at(2).step, 1U);
  request(2);
  EXPECT_EQ(observed.size(), 2U) << "the round is not over";
  for (Step step = 2; step <= 3; ++step) {
    for (MemberId id = 0; id < 3; ++id) write(id, step);
    deliver_all();
  }
  request(2);
  ASSERT_EQ(observed.size(), 3U);
  EXPECT_EQ(observed[2].round, 3U);
  EXPECT_TRUE(observed[2].value.empty()) << "the state after round 2 is gone";
}

TEST_F(AllreduceTest, HashesCopiesByTheirBytes) {
  start(3, 2);
  const CopyHash before = exchange(0).copy_hash();
  EXPECT_EQ(before, exchange(1).copy_hash());
  write(0, 1);
  write(1, 1);
  deliver_all();
  const CopyHash after = exchange(0).copy_hash();
  EXPECT_EQ(after.round, 1U);
  EXPECT_NE(after.hash, before.hash);
  EXPECT_EQ(after, exchange(1).copy_hash());
  constexpr std::array bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  EXPECT_NE(add_to_hash(0, bytes), add_to_hash(0, std::span{bytes}.first(2)));
  EXPECT_NE(add_to_hash(0, {}), 0U);
}

TEST_F(AllreduceTest, RefusesMessagesThatNoCorrectMemberSends) {
  const ExchangeScope scope{{configuration_, 1, 8}, *layout_, sizeof(double)};
  const SumPiece piece{1, 1, 0, 0, 0, {Buffer::make<double>(2), 0, 2, nullptr}};
  EXPECT_TRUE(is_valid(scope, piece));
  const auto refused = [&](auto change) {
    SumPiece bad = piece;
    change(bad);
    return !is_valid(scope, bad);
  };
  EXPECT_TRUE(refused([](SumPiece& m) { m.epoch = 2; }));
  EXPECT_TRUE(refused([](SumPiece& m) { m.values.count = 3; }));
  EXPECT_TRUE(refused([](SumPiece& m) { m.values.buffer = Buffer::make<float>(2); }));
  EXPECT_TRUE(refused(
      [](SumPiece& m) { m.values.rows = std::make_shared<const std::vector<std::uint32_t>>(2); }));
  EXPECT_TRUE(is_valid(scope, SumAck{1, 1, 1}));
  EXPECT_FALSE(is_valid(scope, SumAck{2, 1, 1}));
  EXPECT_TRUE(is_valid(scope, RoundReport{1, std::nullopt}));
  EXPECT_FALSE(is_valid(scope, RoundReport{1, barrier::finished}));
  EXPECT_TRUE(is_valid(scope, CatchUpRequest{1, 0}));
  EXPECT_FALSE(is_valid(scope, CatchUpRequest{1, 1}));
  EXPECT_FALSE(is_valid(scope, CatchUpReply{1, 0, nullptr}));
  const ExchangeScope stranger{{configuration_, 6, 8}, *layout_, sizeof(double)};
  EXPECT_FALSE(is_valid(stranger, piece));
}

}  // namespace
}  // namespace starling::core
