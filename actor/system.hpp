/// The configuration of CAF's actor system, in which a job's actors run.
#pragma once

#include "starling/actor/caf.hpp"

namespace starling::actor {

/// Runs actors on `threads` control threads, which share one queue, so that a message wakes an idle
/// thread at once: under CAF's default policy, idle threads sleep for up to 10 ms. With 0 threads
/// no actor runs until the caller steps the deterministic scheduler,
/// caf::scheduler::test_coordinator.
class Config : public caf::actor_system_config {
 public:
  explicit Config(std::size_t threads) {
    set("scheduler.policy", threads > 0 ? caf::atom("sharing") : caf::atom("testing"));
    set("scheduler.max-threads", threads);
    // After 64 messages an actor leaves the thread to others, so that two actors that keep each
    // other busy do not occupy it.
    set("scheduler.max-throughput", std::size_t{64});
    set("logger.verbosity", caf::atom("quiet"));
  }
};

}  // namespace starling::actor
