// Tests that bsp gives the same bits under every schedule, that BarrierChecker finds violations,
// and that a job fails if its scheduler gives up on it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "starling/models/tabular/perceptron.hpp"
#include "tests/actor/cluster/small_jobs.hpp"
#include "tests/actor/job/scheduled_jobs.hpp"

namespace starling::actor {
namespace {

/// Under every schedule, the workers of a bsp job compute the same as one worker on the union of
/// their batches: the same up to rounding, and the same bits under each schedule.
TEST(UnionBatch, IsTheSameToTheBitUnderEverySchedule) {
  const models::Table data = load("digits:n=200");
  const auto any = models::parse_model<float>("softmax", data).value();
  const auto& model = std::get<models::Softmax<float>>(any);
  TrainOptions options;
  options.job.mode = core::Mode::central;
  options.job.barrier = {barrier::Bsp{}};
  options.job.shards = 2;
  options.job.steps = 10;
  const auto train_by = [&](std::size_t workers, std::uint64_t seed) {
    Schedule schedule{seed};
    TrainOptions run_options = options;
    run_options.job.workers = workers;
    run_options.batch = 24 / workers;
    run_options.job = schedule.scheduled(run_options.job);
    return parameters_of(model, run_options, train(model, data, nullptr, run_options).value());
  };
  const auto alone = train_by(1, 0);
  for (const std::size_t workers : {2U, 3U, 4U}) {
    const auto first = train_by(workers, 0);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      difference += std::pow(first[i] - alone[i], 2);
      norm += std::pow(alone[i], 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 1e-5) << workers << " workers";
    for (std::uint64_t seed = 1; seed < schedule_count / 5; ++seed)
      EXPECT_EQ(train_by(workers, seed), first) << workers << " workers, seed " << seed;
  }
}

/// A checker of a stricter barrier than the job's must find violations.
TEST(BarrierChecker, FindsViolationsOfAStricterBarrier) {
  struct CheckedBarrier {
    core::Mode mode;
    const char* barrier;
    const char* checked;
  };
  for (const CheckedBarrier& test_case :
       {CheckedBarrier{core::Mode::central, "asp", "bsp"},
        CheckedBarrier{core::Mode::central, "ssp:s=2", "ssp:s=1"},
        CheckedBarrier{core::Mode::central, "pbsp:beta=1", "pbsp:beta=3"},
        CheckedBarrier{core::Mode::hybrid, "pbsp:beta=1", "pbsp:beta=2"},
        CheckedBarrier{core::Mode::peer, "pssp:s=2,beta=2", "pssp:s=1,beta=2"},
        CheckedBarrier{core::Mode::peer, "pdssp:low=1,high=4,cap,beta=2",
                       "pdssp:low=1,high=1,cap,beta=2"}}) {
    std::size_t violations = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      JobOptions job;
      job.mode = test_case.mode;
      job.barrier = barrier::parse(test_case.barrier).value();
      job.steps = 6;
      job.seed = seed;
      job.delay = parse_distribution("exp:5ms").value();
      violations += run(job, barrier::parse(test_case.checked).value()).violations.size();
    }
    EXPECT_GT(violations, 0U) << test_case.barrier << " checked as " << test_case.checked;
  }
}

/// The scheduler returns before the job has an outcome.
TEST(TestScheduler, FailsTheJobIfItGivesUp) {
  struct GivesUpAtOnce final : TestScheduler {
    Schedule schedule{1};
    bool began = false;
    void run_until(caf::actor_system& system, ComputePool& pool,
                   const std::function<bool()>& over) override {
      if (std::exchange(began, true)) schedule.run_until(system, pool, over);
    }
  } scheduler;
  JobOptions job;
  job.steps = 1;
  job.scheduler = &scheduler;
  const auto task = std::make_shared<CountingTask>(job.workers, 1, false);
  const auto outcome = run_job(job, task, CountingTask::applier(), task->initial_states()).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "the scheduler has ended before the job");
}

}  // namespace
}  // namespace starling::actor
