// Bsp gives the same bits under every schedule, BarrierChecker finds violations, and a job fails if
// its scheduler gives it up.
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

/// Under every schedule, P workers under bsp equal one machine on the union of their batches.
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
    TrainOptions mine = options;
    mine.job.workers = workers;
    mine.batch = 24 / workers;
    mine.job = schedule.scheduled(mine.job);
    return parameters_of(model, mine, train(model, data, nullptr, mine).value());
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
    for (std::uint64_t seed = 1; seed < schedules / 5; ++seed)
      EXPECT_EQ(train_by(workers, seed), first) << workers << " workers, seed " << seed;
  }
}

/// A checker of a stricter barrier than the job's must find violations.
TEST(BarrierChecker, FindsViolationsOfAStricterBarrier) {
  struct Pair {
    core::Mode mode;
    const char* barrier;
    const char* checked;
  };
  for (const Pair& pair :
       {Pair{core::Mode::central, "asp", "bsp"}, Pair{core::Mode::central, "ssp:s=2", "ssp:s=1"},
        Pair{core::Mode::central, "pbsp:beta=1", "pbsp:beta=3"},
        Pair{core::Mode::hybrid, "pbsp:beta=1", "pbsp:beta=2"},
        Pair{core::Mode::peer, "pssp:s=2,beta=2", "pssp:s=1,beta=2"}}) {
    std::size_t faults = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      JobOptions job;
      job.mode = pair.mode;
      job.barrier = barrier::parse(pair.barrier).value();
      job.steps = 6;
      job.seed = seed;
      job.delay = parse_distribution("exp:5ms").value();
      faults += run(job, barrier::parse(pair.checked).value()).faults.size();
    }
    EXPECT_GT(faults, 0U) << pair.barrier << " seen as " << pair.checked;
  }
}

/// The scheduler returns before the job has an outcome.
TEST(TestScheduler, FailsTheJobIfItGivesUp) {
  struct Idle final : TestScheduler {
    Schedule schedule{1};
    bool began = false;
    void run_until(caf::actor_system& system, ComputePool& pool,
                   const std::function<bool()>& over) override {
      if (std::exchange(began, true)) schedule.run_until(system, pool, over);
    }
  } idle;
  JobOptions job;
  job.steps = 1;
  job.scheduler = &idle;
  const auto task = std::make_shared<CountingTask>(job.workers, 1, false);
  const auto outcome = run_job<float>(job, task, CountingTask::applier(), task->start()).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "the scheduler has given the job up");
}

}  // namespace
}  // namespace starling::actor
