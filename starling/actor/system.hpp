/// The actor system a job runs in.
#pragma once

#include "starling/actor/types.hpp"

namespace starling::actor {

/// CAF's configuration as Starling needs it. `threads` control threads share one queue, which wakes
/// an idle one at once: CAF's default policy lets idle threads sleep for up to 10 ms.
class Config : public caf::actor_system_config {
 public:
  explicit Config(std::size_t threads) : Config("sharing") {
    set("scheduler.max-threads", threads);
  }

  /// One thread, no clock, every delivery chosen by a test.
  static Config deterministic() { return Config{"testing"}; }

 private:
  explicit Config(const char* policy) {
    add_message_types<caf::id_block::starling>();
    set("scheduler.policy", caf::atom_from_string(policy));
    set("logger.verbosity", caf::atom("quiet"));
  }
};

}  // namespace starling::actor
