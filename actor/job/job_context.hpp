/// The state that the actors of one job share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/actor/compute/task.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/timeline.hpp"
#include "starling/base/distributions/distribution.hpp"

namespace starling::actor {

/// Outlives the actors.
struct JobContext {
  std::shared_ptr<Task> task;
  std::unique_ptr<ComputePool> pool;
  /// The injected delay of each step.
  Distribution delay;
  /// By worker, the factor by which its steps are slowed down; 1 is full speed.
  std::vector<double> slowdown_factors;
  std::uint64_t seed = 1;
  /// Records what the workers do; null if nobody wants to know.
  Timeline* timeline = nullptr;
  /// The clock of the actor system and its timers; set before the first actor is spawned.
  const caf::actor_clock* clock = nullptr;
  /// When the job started, by `clock`.
  caf::actor_clock::time_point start;

  /// The time since the job started.
  [[nodiscard]] core::Time now() const { return clock->now() - start; }
};
using JobContextPtr = std::shared_ptr<JobContext>;

}  // namespace starling::actor
