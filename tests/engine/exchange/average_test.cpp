/// Tests the average exchange message by message: which steps count when, that a round is the mean
/// of all copies on every worker, to the last bit, and what happens when workers join, end and die.
#include "starling/engine/exchange/average/average.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

class AverageTest : public RoundsHarness<AverageExchange> {
 protected:
  /// Plain SGD with a rate of 1: a step moves an own copy by -value.
  void use_sgd() {
    applier_ =
        gradient_applier<double>({.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .batch = 1});
  }
  /// Each of the workers writes the steps `first` to `last`, which add 1 each.
  void write_steps(std::initializer_list<MemberId> workers, Step first, Step last) {
    for (const MemberId id : workers)
      for (Step step = first; step <= last; ++step) write(id, step, 1);
  }
};

TEST_F(AverageTest, StepsCountAtOnceExceptTheLastOfARound) {
  use_sgd();
  name_ = "average:every=2";
  start(2, 3);
  for (MemberId id = 0; id < 3; ++id) write(id, 1, -1.0 - id);
  EXPECT_TRUE(in_flight_.empty());
  for (MemberId id = 0; id < 3; ++id) {
    EXPECT_EQ(written_[id], 1);
    EXPECT_EQ(sum(id), 1.0 + id) << "its own update alone";
    EXPECT_EQ(shared(id), 0) << "no mean yet";
    EXPECT_EQ(exchange(id).own_steps(), 1U);
    ASSERT_EQ(exchange(id).progress().size(), 1U);
    EXPECT_EQ(exchange(id).progress()[0].step, 1U);
  }
  write(0, 2, 0);
  write(1, 2, 0);
  deliver_all();
  EXPECT_EQ(written_[0], 1);
  write(2, 2, -3);
  deliver_all();
  for (MemberId id = 0; id < 3; ++id) {
    EXPECT_EQ(written_[id], 2);
    EXPECT_EQ(sum(id, 1), 3) << "the mean of 1, 2 and 6";
    EXPECT_EQ(exchange(id).synced_step(), 2U);
    EXPECT_EQ(exchange(id).own_steps(), 0U);
    EXPECT_EQ(exchange(id).progress().size(), 3U);
    EXPECT_EQ(exchange(id).state(0).samples, 6U);
  }
}

TEST_F(AverageTest, MeanIsWeighedBySamples) {
  use_sgd();
  name_ = "average:every=1";
  start(1, 2);
  write(0, 1, -1, 1);
  write(1, 1, -5, 3);
  EXPECT_EQ(sum(1), 5) << "the full rate, whatever the number of samples";
  deliver_all();
  EXPECT_EQ(sum(0), (1.0 * 1 + 3.0 * 5) / 4);
  expect_equal_copies();
}

TEST_F(AverageTest, UpdatesOfNoSamplesChangeNothing) {
  use_sgd();
  name_ = "average:every=1";
  start(1, 2);
  write(0, 1, std::nan(""), 0);
  write(1, 1, -4, 1);
  deliver_all();
  EXPECT_EQ(sum(0), 4);
  write(0, 2, std::nan(""), 0);
  write(1, 2, std::nan(""), 0);
  deliver_all();
  EXPECT_EQ(sum(1), 4);
  EXPECT_EQ(written_[0], 2);
}

/// Momentum stays where its gradients came from.
TEST_F(AverageTest, EachWorkerHasAnOptimizerOfItsOwn) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1, .momentum = 0.5}, .schedule = {}, .batch = 1});
  name_ = "average:every=1";
  start(1, 2);
  write(0, 1, -8);
  write(1, 1, 0);
  deliver_all();
  EXPECT_EQ(sum(0), 4) << "the mean of 8 and 0";
  write(0, 2, 0);
  write(1, 2, 0);
  deliver_all();
  EXPECT_EQ(sum(1), 6) << "the mean of 4 + 0.5 * 8 and 4";
  expect_equal_copies();
}

/// A checkpoint within a round has the state of the optimizer after the last round, as its values.
TEST_F(AverageTest, StateOfTheOptimizerIsThatOfTheRound) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1, .momentum = 0.5}, .schedule = {}, .batch = 1});
  name_ = "average:every=2";
  start(1, 2);
  write_steps({0, 1}, 1, 1);
  write_steps({0, 1}, 2, 2);
  deliver_all();
  const auto slot = [&] { return exchange(0).state(0).slots.as<double>()[0]; };
  const double after_round = slot();
  EXPECT_EQ(exchange(0).state(0).updates, 2U);
  write(0, 3, 8);
  EXPECT_EQ(slot(), after_round);
  EXPECT_EQ(exchange(0).state(0).updates, 2U);
}

TEST_F(AverageTest, WorkerThatEndsWithinARoundHandsInItsSteps) {
  name_ = "average:every=4";
  start(1, 3);
  write_steps({0}, 1, 2);
  end(0, 2);
  write_steps({1, 2}, 1, 4);
  deliver_all();
  for (MemberId id = 0; id < 3; ++id) EXPECT_EQ(sum(id), 10);
  EXPECT_EQ(exchange(1).synced_step(), 4U);
  EXPECT_FALSE(exchange(0).may_leave());
  write(1, 5, 1);
  end(1, 5);
  end(2, 4);
  deliver_all();
  EXPECT_EQ(exchange(0).synced_step(), 5U) << "the last round ends where the last worker ends";
  EXPECT_TRUE(exchange(0).may_leave());
  EXPECT_EQ(sum(0), 11);
  expect_equal_copies();
  EXPECT_EQ(exchange(0).progress()[1].step, 5U);
}

TEST_F(AverageTest, DeathOfAWorkerLosesItsStepsOfTheRoundOnly) {
  name_ = "average:every=2";
  start(1, 3);
  write_steps({0, 1, 2}, 1, 2);
  deliver_all();
  write_steps({2}, 3, 3);
  write_steps({0, 1}, 3, 4);
  deliver_all();
  EXPECT_EQ(written_[0], 3);
  remove(2);
  adopt_all();
  deliver_all();
  EXPECT_EQ(sum(0), 10);
  EXPECT_EQ(written_[0], 4);
  expect_equal_copies();
}

TEST_F(AverageTest, JoinerBeginsWithTheRoundThatOthersAreIn) {
  name_ = "average:every=3";
  start(2, 2);
  write_steps({0, 1}, 1, 3);
  deliver_all();
  write(0, 4, 1);
  add(7);
  adopt_all();
  enter(7);
  deliver_all();
  EXPECT_EQ(exchange(7).synced_step(), 3U);
  EXPECT_EQ(written_[7], 1) << "it has entered";
  EXPECT_EQ(sum(7, 1), 6) << "without what worker 0 has not shared";
  EXPECT_EQ(sum(0, 1), 7);
  write_steps({0}, 5, 6);
  write_steps({1, 7}, 4, 6);
  deliver_all();
  EXPECT_EQ(sum(7), 15);
  expect_equal_copies();
}

TEST_F(AverageTest, CopiesAgreeAfterEachRoundWhateverHappensToWorkers) {
  expect_agreement_despite_faults([](std::uint64_t seed) {
    const Step every = 1 + seed % 5;
    return std::pair{"average:every=" + std::to_string(every), every};
  });
}

TEST_F(AverageTest, AnswersASnapshotWithTheFirstRoundThatEndsThereOrLater) {
  name_ = "average:every=4";
  start(1, 1);
  std::vector<RangeState> observed;
  const auto collect = [&](auto event) {
    ExchangeEffects<AverageExchange::Context::Messages> effects;
    event(Context{time_, random_, effects});
    for (auto& effect : effects)
      if (auto* state = std::get_if<ObservedState>(&effect)) observed.push_back(*state->state);
  };
  collect([&](const auto& context) { exchange(0).on(context, Snapshot{9, 2}); });
  EXPECT_TRUE(observed.empty());
  for (Step step = 1; step <= 4; ++step) {
    auto one = Buffer::make<double>(1);
    one->as<double>()[0] = 1;
    collect([&](const auto& context) {
      exchange(0).write(context, {step, {{{0, {one, 0, 1, nullptr}}}, 1}, step});
    });
  }
  ASSERT_EQ(observed.size(), 1U);
  EXPECT_EQ(observed[0].round, 4U);
  EXPECT_EQ(observed[0].value.as<double>()[0], 4);
}

TEST(Average, RefusesOtherArgumentsAndBarriers) {
  const auto checked = [](const char* exchange, const char* barrier) {
    const auto valid = check_exchange(exchange, Mode::peer, *barrier::parse(barrier),
                                      default_recheck(Mode::peer), 4);
    return valid ? std::string{"accepted"} : valid.error().message;
  };
  EXPECT_EQ(checked("average", "bsp"), "accepted");
  EXPECT_EQ(checked("average:every=1", "bsp"), "accepted");
  EXPECT_EQ(checked("average:every=65536", "bsp"), "accepted");
  EXPECT_NE(checked("average:every=0", "bsp").find("every: '0'"), std::string::npos)
      << checked("average:every=0", "bsp");
  EXPECT_NE(checked("average:every=x", "bsp").find("every: 'x'"), std::string::npos);
  EXPECT_NE(checked("average:every=65537", "bsp").find("65536"), std::string::npos);
  EXPECT_EQ(
      checked("average:each=8", "bsp"),
      "exchange: average: 'each=8' is unknown; valid: every=N, for a mean after each N steps");
  EXPECT_NE(checked("average:every=8", "asp").find("makes all workers wait for each other"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::core
