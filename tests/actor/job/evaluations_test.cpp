// Tests that each evaluation is made when it is due, or is counted as left out. The actors of a job
// run under test schedulers.
#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <cmath>
#include <set>

#include "starling/actor/job/periodic_trigger.hpp"
#include "tests/actor/cluster/small_jobs.hpp"
#include "tests/actor/job/schedule.hpp"

namespace starling::actor {
namespace {

/// A model whose loss is its only parameter, which begins at 1 and falls by 0.001 with each update.
struct FallingModel {
  using Scalar = float;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {1}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 1.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch, std::span<float> g,
                  models::ComputeContext&) const {
    std::ranges::fill(g, 1.0F);
    return 1;
  }
  models::Metrics evaluate(std::span<const float> w, const models::Table&, models::Batch,
                           models::ComputeContext&) const {
    return {{"loss", w[0]}};
  }
};

/// Runs a computation only if no actor has a message.
class ActorsFirst : public TestScheduler {
 public:
  void run_until(caf::actor_system& system, ComputePool& pool,
                 const std::function<bool()>& over) override {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
    while (!over()) {
      if (scheduler.has_job()) {
        scheduler.run_once();
      } else if (pool.queue_size() > 0) {
        pool.run(next_computation(pool), scratch_);
      } else if (!scheduler.clock().trigger_timeout()) {
        return;
      }
    }
  }

 private:
  /// Returns the index of the computation to run.
  [[nodiscard]] virtual std::size_t next_computation(ComputePool&) const { return 0; }

  Scratch scratch_;
};

/// Runs the computation that was submitted last first, so that evaluations wait until no worker has
/// a gradient to compute.
class LatestComputationFirst final : public ActorsFirst {
  [[nodiscard]] std::size_t next_computation(ComputePool& pool) const override {
    return pool.queue_size() - 1;
  }
};

class Evaluations : public testing::TestWithParam<core::Mode> {
 protected:
  /// Returns the options of a job in which each worker makes 100 steps.
  [[nodiscard]] TrainOptions options(std::size_t workers, core::Step every) {
    TrainOptions options;
    options.job.mode = GetParam();
    options.job.workers = workers;
    options.job.barrier =
        barrier::parse(workers > 1 ? "pssp:s=4,beta=1" : "pssp:s=4,beta=0").value();
    options.job.steps = 100;
    options.job.evaluate_every = every;
    options.job.evaluate_train = false;
    options.batch = 4;
    options.optimizer = models::Sgd{.lr = 0.001 * static_cast<double>(workers)};
    options.job.on_evaluated = [this](const Progress& progress, const auto&) {
      steps_.push_back(progress.evaluated_at);
      losses_.push_back(progress.test.at(0).value);
      return steps_.size() < stop_after_;
    };
    return options;
  }
  [[nodiscard]] Outcome run(const TrainOptions& options) {
    return train<FallingModel, models::Table>({}, data_, &data_, options).value();
  }

  using Step = core::Step;
  models::Table data_ = load("linear:d=5,n=60");
  std::vector<double> steps_;
  std::vector<double> losses_;
  std::size_t stop_after_ = 1000;
};

INSTANTIATE_TEST_SUITE_P(In, Evaluations,
                         testing::Values(core::Mode::central, core::Mode::hybrid, core::Mode::peer),
                         [](const auto& mode) { return core::print(mode.param); });

TEST_P(Evaluations, AreMadeWheneverDueAndAtTheEndForOneWorker) {
  ActorsFirst scheduler;
  TrainOptions job = options(1, 30);
  job.job.scheduler = &scheduler;
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(steps_, (std::vector<double>{30, 60, 90, 100}));
  EXPECT_EQ(outcome.last.counts.due, 4U);
  EXPECT_EQ(outcome.last.counts.left_out(), 0U);
}

TEST_P(Evaluations, AtTheEndAreNotRepeatedIfOneIsDueAtTheLastStep) {
  ActorsFirst scheduler;
  TrainOptions job = options(1, 50);
  job.job.scheduler = &scheduler;
  EXPECT_EQ(run(job).last.counts.due, 2U);
  EXPECT_EQ(steps_, (std::vector<double>{50, 100}));
}

TEST_P(Evaluations, OfManyWorkersSeeAModelBeforeTheNextEvaluationIsDue) {
  ActorsFirst scheduler;
  TrainOptions job = options(3, 7);
  job.job.scheduler = &scheduler;
  const Outcome outcome = run(job);
  ASSERT_EQ(steps_.size(), 15U);
  for (std::size_t i = 0; i < 14; ++i)
    EXPECT_EQ(std::floor(steps_[i] / 7), static_cast<double>(i + 1)) << steps_[i];
  EXPECT_EQ(outcome.last.counts.due, 15U);
  EXPECT_EQ(outcome.last.counts.left_out(), 0U);
}

/// Tests in central mode only. In other modes, a worker submits its next gradient before a model is
/// collected.
class CentralEvaluations : public Evaluations {};

INSTANTIATE_TEST_SUITE_P(In, CentralEvaluations, testing::Values(core::Mode::central));

/// One evaluation runs and eight wait, so further ones are left out.
TEST_P(CentralEvaluations, AreLeftOutAndCountedIfTooManyWait) {
  LatestComputationFirst scheduler;
  TrainOptions job = options(1, 5);
  job.job.scheduler = &scheduler;
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(steps_, (std::vector<double>{5, 10, 15, 20, 25, 30, 35, 40, 45, 100}));
  EXPECT_EQ(outcome.last.counts.due, 20U);
  EXPECT_EQ(outcome.last.counts.crowded, 10U);
  EXPECT_EQ(outcome.last.counts.left_out(), 10U);
  // Each evaluation is of the model at its step.
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(losses_[i], 1 - 0.001 * steps_[i], 1e-5);
}

/// The worker has made all steps before an evaluation shows that the target was reached.
TEST_P(CentralEvaluations, MayReachTheTargetAfterWaiting) {
  LatestComputationFirst scheduler;
  TrainOptions job = options(1, 5);
  job.job.scheduler = &scheduler;
  job.job.until = Target{"loss", 0.9801, false};
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.end, Outcome::End::reached) << outcome.error;
  EXPECT_NEAR(parameters_of(FallingModel{}, job, outcome)[0], 0.98, 1e-5);
  EXPECT_EQ(outcome.last.updates, 100U);
  EXPECT_EQ(outcome.last.evaluated_at, 20);
  EXPECT_EQ(outcome.last.evaluations + outcome.last.counts.left_out(), outcome.last.counts.due)
      << "the model that reached the target is not evaluated again at the end";
}

TEST_P(Evaluations, EndTheJobIfTheCallbackReturnsFalse) {
  ActorsFirst scheduler;
  TrainOptions job = options(1, 10);
  job.job.scheduler = &scheduler;
  stop_after_ = 3;
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.end, Outcome::End::reached);
  ASSERT_GE(steps_.size(), 3U);
  EXPECT_EQ(steps_[2], 30);
  EXPECT_LT(outcome.last.updates, 40U);
}

TEST_P(Evaluations, AreMadeOrCountedUnderManySchedules) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    steps_.clear();
    Schedule schedule{seed};
    TrainOptions job = options(1 + seed % 4, 1 + seed % 9);
    if (GetParam() == core::Mode::central && seed % 2 == 0)
      job.job.barrier = barrier::parse("bsp").value();
    job.job = schedule.scheduled(job.job);
    const Outcome outcome = run(job);
    ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error << ", seed " << seed;
    const EvaluationCounts& counts = outcome.last.counts;
    const Step every = job.job.evaluate_every;
    EXPECT_EQ(counts.due, (100 + every - 1) / every) << seed;
    EXPECT_EQ(steps_.size() + counts.left_out(), counts.due) << seed;
    EXPECT_EQ(steps_.size(), outcome.last.evaluations) << seed;
    EXPECT_TRUE(std::ranges::is_sorted(steps_)) << seed;
    EXPECT_EQ(steps_.back(), 100) << seed;
    EXPECT_EQ(std::set<double>(steps_.begin(), steps_.end()).size(), steps_.size()) << seed;
  }
}

TEST(PeriodicTrigger, IsDueAtMultiples) {
  PeriodicTrigger trigger{10, 25};
  EXPECT_EQ(trigger.next(), 30);
  EXPECT_EQ(trigger.advance_to(29.75), 0U);
  EXPECT_EQ(trigger.advance_to(30), 1U);
  EXPECT_EQ(trigger.advance_to(39), 0U);
  EXPECT_EQ(trigger.advance_to(61.5), 3U);
  EXPECT_EQ(trigger.next(), 70);
  PeriodicTrigger none{0};
  EXPECT_EQ(none.advance_to(1e300), 0U);
}

TEST(PeriodicTrigger, DoesNotCountTheEndItself) {
  EXPECT_EQ(PeriodicTrigger{10}.advance_to_end(40), 3U);
  EXPECT_EQ(PeriodicTrigger{10}.advance_to_end(45), 4U);
  EXPECT_EQ(PeriodicTrigger{10}.advance_to_end(9), 0U);
  EXPECT_EQ(PeriodicTrigger{0}.advance_to_end(40), 0U);
}

}  // namespace
}  // namespace starling::actor
