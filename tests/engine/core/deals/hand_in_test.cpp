/// How workers hand in early, and how their samples are dealt anew.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "starling/engine/core/deals/dealer.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "tests/engine/core/council/configurations.hpp"

namespace starling::core {
namespace {

class HandInWorker : public testing::Test {
 protected:
  /// Worker 0 takes 16 samples a step, of a part that ends after `samples`.
  void begin(std::uint64_t samples) {
    WorkerOptions options;
    options.central = options.bsp = true;
    options.barrier = {barrier::Absp{}};
    options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1});
    options.first_part = part_of(samples);
    worker_.emplace(options);
    run([](Worker& worker, const Context& context) { worker.start(context); });
  }

  static DealPart part_of(std::uint64_t samples) {
    return {.index = 0,
            .count = 1,
            .order = std::make_shared<const models::SampleOrder>(100, 1, 16, 1),
            .samples = samples};
  }

  template <class Event>
  void run(Event event) {
    effects_.clear();
    event(*worker_, Context{Time{}, random_, effects_});
  }
  void read() {
    run([](Worker& worker, const Context& context) {
      worker.on_values(context, worker.step(), {});
    });
  }
  void compute(std::uint32_t samples) {
    Update update;
    update.samples = samples;
    run([&](Worker& worker, const Context& context) {
      worker.on_update(context, worker.step(), std::move(update));
    });
  }
  void write_and_pass() {
    run([](Worker& worker, const Context& context) {
      worker.on_written(context, worker.step() + 1);
      worker.on(context, Proceed{worker.step(), worker.step() + 1});
    });
  }
  void tell(Step step) {
    run([&](Worker& worker, const Context& context) { worker.on(context, core::HandIn{step}); });
  }

  /// Returns the effect, or the message to the coordinator, of a type; nullptr if there is none.
  template <class E>
  const E* effect() const {
    for (const Effect& effect : effects_) {
      if constexpr (std::is_same_v<E, BatchDone>) {
        if (const auto* send = std::get_if<Send>(&effect))
          if (const auto* message = std::get_if<E>(&send->message)) return message;
      } else if (const auto* found = std::get_if<E>(&effect)) {
        return found;
      }
    }
    return nullptr;
  }

  Random random_{1};
  Effects effects_;
  std::optional<Worker> worker_;
};

TEST_F(HandInWorker, AWholeBatchIsReportedAndTheNextOneFollows) {
  begin(100);
  read();
  ASSERT_TRUE(effect<Compute>());
  EXPECT_EQ(effect<Compute>()->share.taken, 0U);
  EXPECT_EQ(effect<Compute>()->samples_max, 16U);
  compute(16);
  ASSERT_TRUE(effect<BatchDone>());
  EXPECT_EQ(effect<BatchDone>()->step, 1U);
  write_and_pass();
  read();
  EXPECT_EQ(effect<Compute>()->share.taken, 16U);
}

TEST_F(HandInWorker, AWorkerThatComputesIsCutShortAndGoesOnWhereItWas) {
  begin(100);
  read();
  tell(1);
  ASSERT_TRUE(effect<HandInNow>());
  EXPECT_EQ(effect<HandInNow>()->step, 0U);
  compute(5);
  EXPECT_FALSE(effect<BatchDone>());
  EXPECT_EQ(worker_->dealt_taken(), 5U);
  write_and_pass();
  tell(1);
  read();
  EXPECT_EQ(effect<Compute>()->share.taken, 5U);
  EXPECT_EQ(effect<Compute>()->samples_max, 16U) << "it was told of the step before";
  compute(16);
  EXPECT_TRUE(effect<BatchDone>());
}

TEST_F(HandInWorker, AWorkerThatHasNotBegunComputesOneMicroBatch) {
  begin(100);
  tell(1);
  EXPECT_FALSE(effect<HandInNow>());
  read();
  EXPECT_EQ(effect<Compute>()->samples_max, 2U);
  run([](Worker& worker, const Context& context) { worker.on_failure(context, 0, "thrown"); });
  EXPECT_EQ(effect<Compute>()->samples_max, 2U) << "again";
  EXPECT_EQ(micro_batch_of(17), 3U);
  EXPECT_EQ(micro_batch_of(3), 1U);
  EXPECT_EQ(micro_batch_of(0), 0U);
}

TEST(SamplesBegun, AreThoseWhoseTimeHasBegun) {
  using namespace std::chrono_literals;
  EXPECT_EQ(samples_begun(4, 0ns, 100ms), 1U) << "at least one";
  EXPECT_EQ(samples_begun(4, 25ms, 100ms), 1U);
  EXPECT_EQ(samples_begun(4, 25ms + 1ns, 100ms), 2U);
  EXPECT_EQ(samples_begun(4, 100ms, 100ms), 4U);
  EXPECT_EQ(samples_begun(1, 1ms, 100ms), 1U);
  for (std::uint64_t begun = 1; begun <= 25; ++begun)
    EXPECT_EQ(samples_begun(25, begun * 4ms, 100ms), begun) << "to the nanosecond";
}

TEST_F(HandInWorker, AWorkerEndsWhenItsPartIsTaken) {
  begin(20);
  read();
  compute(16);
  write_and_pass();
  read();
  EXPECT_EQ(effect<Compute>()->samples_max, 4U) << "what is left of its part";
  compute(3);
  write_and_pass();
  read();
  EXPECT_EQ(effect<Compute>()->samples_max, 1U);
  compute(1);
  EXPECT_TRUE(effect<BatchDone>()) << "others need not wait for its end";
  run([](Worker& worker, const Context& context) { worker.on_written(context, 3); });
  EXPECT_TRUE(worker_->is_done());
  EXPECT_EQ(worker_->samples(), 20U);
}

TEST_F(HandInWorker, WhatIsTakenIsKnownOnceTheUpdateIsThere) {
  begin(100);
  EXPECT_FALSE(worker_->knows_taken()) << "it reads";
  read();
  EXPECT_FALSE(worker_->knows_taken()) << "it computes";
  worker_->hold();
  compute(9);
  EXPECT_TRUE(worker_->knows_taken());
  EXPECT_EQ(worker_->dealt_taken(), 9U);
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(50)); });
  EXPECT_EQ(worker_->dealt_taken(), 0U) << "its present update belongs to the former deal";
  EXPECT_EQ(worker_->samples_taken(), 9U);
  write_and_pass();
  read();
  EXPECT_EQ(effect<Compute>()->share.taken, 0U);
}

TEST_F(HandInWorker, AHeldWorkerThatHasTakenAllWaitsForTheNextDeal) {
  begin(16);
  read();
  worker_->hold();
  compute(16);
  write_and_pass();
  EXPECT_TRUE(worker_->is_held());
  run([](Worker& worker, const Context& context) { worker.on_deal(context, part_of(4)); });
  EXPECT_FALSE(worker_->is_done()) << "it shares what others have left";
}

// --- the dealer ---------------------------------------------------------------------------------

DealOptions options() {
  return {.samples = 60, .batch = 5, .by_samples = true, .epochs = 3, .workers = 3};
}

Configuration configuration_of(Epoch epoch, std::initializer_list<MemberId> ids) {
  Configuration configuration;
  configuration.epoch = configuration.members_since = epoch;
  configuration.members = members_of(ids);
  return configuration;
}

DealReport report(DealNumber number, const Deal& known, std::uint64_t taken, Step begun,
                  std::uint64_t in_all) {
  return {
      .number = number, .deal = known, .taken = taken, .begun = begun, .samples_in_all = in_all};
}

TEST(HandInDealer, CallsForReportsWhenAWorkerBeginsItsLastBatchOfTheEpoch) {
  Dealer dealer{options()};
  EXPECT_EQ(dealer.part_of(1)->samples, 60U);
  EXPECT_FALSE(dealer.take_due_revision(1, 14));
  EXPECT_TRUE(dealer.take_due_revision(1, 15)) << "20 samples are its part of the epoch";
  EXPECT_FALSE(dealer.take_due_revision(1, 20)) << "it has asked already";
  const Configuration now = configuration_of(1, {0, 1, 2});
  EXPECT_EQ(dealer.on(now, RevisionRequest{{1, 0}})->next, (DealNumber{1, 1}));
  const Deal first = dealer.deal();
  std::optional<Deal> next;
  next = dealer.on(now, 0, report({1, 1}, first, 20, 4, 20));
  next = dealer.on(now, 1, report({1, 1}, first, 20, 4, 20));
  next = dealer.on(now, 2, report({1, 1}, first, 9, 4, 9));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->former.back().taken, (std::vector<models::Taken>{{0, 20}, {0, 20}, {0, 9}}));
  EXPECT_EQ(next->workers.back(), (DealtWorker{2, 1, 4, 0, 9}));
  ASSERT_TRUE(dealer.on(now, NewDeal{*next}));
  EXPECT_EQ(dealer.part_of(0)->samples, 4U + 40)
      << "of the 11 that worker 2 has left, and 2 epochs";
}

TEST(HandInDealer, CountsTheSamplesThatOthersHoldOfADeadWorker) {
  Dealer dealer{options()};
  const Configuration all = configuration_of(1, {0, 1, 2});
  (void)dealer.on(all, RevisionRequest{{1, 0}});
  const Deal first = dealer.deal();
  (void)dealer.on(all, 0, report({1, 1}, first, 20, 4, 20));
  (void)dealer.on(all, 1, report({1, 1}, first, 20, 4, 20));
  const Deal second = dealer.on(all, 2, report({1, 1}, first, 9, 4, 9)).value();
  ASSERT_TRUE(dealer.on(all, NewDeal{second}));
  // Worker 2 dies. Others hold 12 of its samples, of which 3 are of the second deal.
  const Configuration two = configuration_of(2, {0, 1});
  DealReport with_progress = report({2, 0}, second, 4, 5, 24);
  with_progress.progress = {{{2, 1}, 5, 12}};
  (void)dealer.on(two, 0, with_progress);
  const Deal third = dealer.on(two, 1, report({2, 0}, second, 2, 5, 22)).value();
  EXPECT_EQ(third.former.back().taken, (std::vector<models::Taken>{{0, 4}, {0, 2}, {0, 3}}));
}

TEST(HandInDealer, KnowsWhatTheWorkersOfAResumedJobHaveTaken) {
  DealOptions resumed = options();
  resumed.former = {{.batch = 5, .samples = 31, .taken = {{0, 16}, {0, 15}}}};
  const Dealer dealer{resumed};
  EXPECT_EQ(dealer.deal().workers[0].first_samples, 11U);
  EXPECT_EQ(dealer.deal().workers[2].first_samples, 10U);
}

}  // namespace
}  // namespace starling::core
