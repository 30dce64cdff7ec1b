/// Runs a whole job on one thread, in an order of one's own choosing: for tests that want to know
/// what the real actors do under very many schedules, and to see any of them again. See
/// docs/design/0007-deterministic-actors.md.
#pragma once

#include <functional>

#include "starling/actor/compute/compute_pool.hpp"

namespace caf {
class actor_system;
}

namespace starling::actor {

/// A job with a scheduler starts no threads. Actors act when CAF's deterministic scheduler
/// (caf::scheduler::test_coordinator) is told to run one of those that have mail; computations run
/// when the pool is; time stands still until the scheduler's clock is moved.
class TestScheduler {
 public:
  virtual ~TestScheduler() = default;

  /// Lets actors act, computations run and time pass until `over` says that it is enough. Called
  /// twice, on the thread that runs the job: first until the job has an outcome, then, after all
  /// actors were told to quit, until none is left. Returning earlier the first time fails the job;
  /// the second time the job waits in vain. Must not throw.
  virtual void run_until(caf::actor_system& system, ComputePool& pool,
                         const std::function<bool()>& over) = 0;
};

}  // namespace starling::actor
