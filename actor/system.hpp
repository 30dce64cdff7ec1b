/// The actor system a job runs in.
#pragma once

#include "starling/actor/caf.hpp"

namespace starling::actor {

/// CAF's configuration as Starling needs it. `threads` control threads share one queue, which wakes
/// an idle one at once: CAF's default policy lets idle threads sleep for up to 10 ms. With 0
/// threads nothing happens until someone runs the deterministic scheduler,
/// caf::scheduler::test_coordinator.
class Config : public caf::actor_system_config {
 public:
  explicit Config(std::size_t threads) {
    set("scheduler.policy", threads > 0 ? caf::atom("sharing") : caf::atom("testing"));
    set("scheduler.max-threads", threads);
    // Two actors that keep each other busy leave a thread to others now and then.
    set("scheduler.max-throughput", std::size_t{64});
    set("logger.verbosity", caf::atom("quiet"));
  }
};

}  // namespace starling::actor
