/// Tests what a worker says of itself: its phase, and for whom it waits.
#include "starling/engine/core/worker/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <variant>

namespace starling::core {
namespace {

using namespace std::chrono_literals;
using Phase = Worker::Phase;

/// Worker 0 of three workers, which asks the two others for their steps after each step.
class SampledWorker : public testing::Test {
 protected:
  SampledWorker() { worker_.start(context()); }

  static WorkerOptions options() {
    WorkerOptions options;
    options.central = false;
    options.barrier = barrier::sampled(barrier::Bsp{}, 2);
    options.last_step = 10;
    options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1, 2});
    return options;
  }

  [[nodiscard]] Context context() { return {now_, random_, out_}; }

  /// Makes the current step, up to the barrier.
  void make_step() {
    worker_.on_values(context(), worker_.step(), {});
    worker_.on_update(context(), worker_.step(), {});
    worker_.on_written(context(), worker_.step() + 1);
  }

  /// Answers the latest draw. The worker numbers its draws from 1, so their count is its number.
  void answer(MemberId from, Step step) {
    // Here each draw counts, so that the number of draws is also the number of the latest one.
    worker_.on(context(), StepAnswer{from, worker_.draw_counts().draws, step});
  }

  Time now_{};
  Random random_{1};
  Effects out_;
  Worker worker_{options()};
};

/// The time of its work is that from the values to the update, without the time for which a pause
/// postponed the computation. Its active time ends when the worker ends.
TEST_F(SampledWorker, CountsTheTimeOfItsWork) {
  EXPECT_EQ(worker_.active_time(5ms), Time{5ms});
  now_ = 10ms;
  worker_.on_values(context(), 0, {});
  now_ = 50ms;
  Update update;
  update.samples = 8;
  worker_.on_update(context(), 0, update, 30ms);
  EXPECT_EQ(worker_.work_done().samples, 8U);
  EXPECT_EQ(worker_.work_done().time, Time{10ms});
  worker_.on(context(), Stop{});
  now_ = 60ms;
  worker_.on_written(context(), 1);
  ASSERT_TRUE(worker_.is_done());
  EXPECT_EQ(worker_.active_time(100ms), Time{60ms});
}

TEST_F(SampledWorker, TellsItsPhase) {
  EXPECT_EQ(Worker{options()}.phase(), Phase::idle);
  EXPECT_EQ(worker_.phase(), Phase::reading);
  worker_.on_values(context(), 0, {});
  EXPECT_EQ(worker_.phase(), Phase::computing);
  worker_.on_update(context(), 0, {});
  EXPECT_EQ(worker_.phase(), Phase::writing);
  worker_.on_written(context(), 1);
  EXPECT_EQ(worker_.phase(), Phase::waiting);
  answer(1, 1);
  answer(2, 1);
  EXPECT_EQ(worker_.phase(), Phase::reading);
  worker_.on(context(), Stop{});
  make_step();
  /// It hands over the parts of an update that are final (EarlyParts, here those from range 4 on),
  /// but only while it computes this update.
  EXPECT_EQ(worker_.phase(), Phase::done);
}

/// They are the parts of the update for the ranges from 4 on (EarlyParts).
TEST_F(SampledWorker, HandsOverPartsOfTheStepThatItComputes) {
  const auto gives_parts = [&](Step step) {
    out_.clear();
    worker_.on_parts(context(), step, {4, {}});
    if (out_.empty()) return false;
    const auto& write = std::get<WriteParts>(out_.front());
    EXPECT_EQ(write.step, step + 1);
    EXPECT_EQ(write.parts.first, 4U);
    return true;
  };
  EXPECT_FALSE(gives_parts(0)) << "it reads";
  worker_.on_values(context(), 0, {});
  EXPECT_TRUE(gives_parts(0));
  EXPECT_FALSE(gives_parts(1)) << "of another step";
  worker_.on_failure(context(), 0, "the model threw");
  EXPECT_TRUE(gives_parts(0)) << "it computes again";
  worker_.on_update(context(), 0, {});
  EXPECT_FALSE(gives_parts(0)) << "it writes";
  worker_.on_written(context(), 1);
  EXPECT_FALSE(gives_parts(0)) << "it waits";
  EXPECT_FALSE(gives_parts(1));
}

TEST_F(SampledWorker, TellsForWhomItWaits) {
  EXPECT_EQ(worker_.laggard(), std::nullopt);
  // Worker 1, the laggard of draw 1, says that it has caught up.
  make_step();
  EXPECT_EQ(worker_.laggard(), std::nullopt) << "nobody has answered";
  answer(2, 1);
  EXPECT_EQ(worker_.laggard(), std::nullopt) << "worker 2 is not behind";
  answer(1, 0);
  EXPECT_EQ(worker_.laggard(), MemberId{1});
  // Worker 1 says, for draw 1, that it has caught up.
  worker_.on(context(), Notice{1, 1});
  ASSERT_EQ(worker_.draw_counts().draws, 2U);
  EXPECT_EQ(worker_.laggard(), std::nullopt) << "it draws again";
  answer(2, 0);
  EXPECT_EQ(worker_.laggard(), MemberId{2});
  worker_.on(context(), Stop{});
  EXPECT_EQ(worker_.phase(), Phase::done);
  EXPECT_EQ(worker_.laggard(), std::nullopt);
}

TEST(CentralWorker, DoesNotKnowForWhomItWaits) {
  WorkerOptions options;
  options.barrier = {barrier::Bsp{}, std::nullopt};
  Random random{1};
  Effects out;
  const Context context{1ms, random, out};
  Worker worker{options};
  worker.start(context);
  worker.on_values(context, 0, {});
  worker.on_update(context, 0, {});
  worker.on_written(context, 1);
  EXPECT_EQ(worker.phase(), Phase::waiting);
  EXPECT_EQ(worker.laggard(), std::nullopt);
}

/// A worker that reads, computes and writes for 1, 2 and 4 ms, and has then made its step.
Worker worker_after_step(bool exchange_is_barrier) {
  WorkerOptions options;
  options.central = false;
  options.barrier = {barrier::Asp{}};
  options.exchange_is_barrier = exchange_is_barrier;
  options.workers = std::make_shared<const std::vector<MemberId>>(std::vector<MemberId>{0, 1});
  Random random{1};
  Effects out;
  Worker worker{options};
  worker.start({0ms, random, out});
  worker.on_values({1ms, random, out}, 0, {});
  worker.on_update({3ms, random, out}, 0, {});
  EXPECT_EQ(worker.phase(), Phase::writing);
  EXPECT_EQ(worker.is_waiting(), exchange_is_barrier);
  EXPECT_EQ(worker.wait_time(5ms), exchange_is_barrier ? Time{2ms} : Time{});
  worker.on_written({7ms, random, out}, 1);
  EXPECT_EQ(worker.phase(), Phase::reading);
  return worker;
}

TEST(WorkerOfAnyExchange, CountsTheTimeOfAWriteAsWaitingIfTheExchangeIsTheBarrier) {
  EXPECT_EQ(worker_after_step(false).wait_time(), Time{});
  EXPECT_EQ(worker_after_step(true).wait_time(), Time{4ms});
}

}  // namespace
}  // namespace starling::core
