/// Runs a whole job on one thread, in an order that the test chooses. Tests try very many schedules
/// of the real actors with it, and can repeat each schedule. See
/// docs/design/0007-deterministic-actors.md.
#pragma once

#include <functional>

#include "starling/actor/compute/compute_pool.hpp"

namespace caf {
class actor_system;
}

namespace starling::actor {

/// A job with a TestScheduler starts no threads. An actor handles a message only when the
/// TestScheduler tells CAF's deterministic scheduler (caf::scheduler::test_coordinator) to run it,
/// a computation runs only in ComputePool::run(), and time passes only when the TestScheduler
/// advances CAF's clock.
class TestScheduler {
 public:
  virtual ~TestScheduler() = default;

  /// Runs actors and computations, and advances the time, until `is_over` returns true. The thread
  /// that runs the job calls it twice: first until the job has an outcome and then, after all
  /// actors were told to quit, until the last one has ended. If it returns from the first call
  /// before `is_over` is true, the job fails; if from the second, the job waits for ever. Must not
  /// throw.
  virtual void run_until(caf::actor_system& system, ComputePool& pool,
                         const std::function<bool()>& is_over) = 0;
};

}  // namespace starling::actor
