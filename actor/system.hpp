/// CAF's actor system, in which a job's actors run.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "starling/actor/caf.hpp"
#include "starling/actor/thread_priority.hpp"

namespace starling::actor {

/// Runs actors on `threads` control threads, which share one queue, so that a message wakes an idle
/// thread at once: under CAF's default policy, idle threads sleep for up to 10 ms. With 0 threads
/// no actor runs until the caller steps the deterministic scheduler,
/// caf::scheduler::test_coordinator.
class Config : public caf::actor_system_config {
 public:
  /// If `priority` is set, all threads of the system have it.
  explicit Config(std::size_t threads, std::optional<ThreadPriority> priority = std::nullopt) {
    if (priority) add_thread_hook<PriorityHook>(*priority);
    set("scheduler.policy", threads > 0 ? caf::atom("sharing") : caf::atom("testing"));
    set("scheduler.max-threads", threads);
    // After 64 messages an actor leaves the thread to others, so that two actors that keep each
    // other busy do not occupy it.
    set("scheduler.max-throughput", std::size_t{64});
    set("logger.verbosity", caf::atom("quiet"));
  }

 private:
  struct PriorityHook final : caf::thread_hook {
    explicit PriorityHook(ThreadPriority value) : priority(value) {}
    void init(caf::actor_system&) override {}
    void thread_started() override { set_priority(priority); }
    void thread_terminates() override {}

    const ThreadPriority priority;
  };
};

/// Waits until all actors of the system have ended. If that takes longer than `log_after`, calls
/// `log`, which may be empty, once with a message: the likely reason is a user's own actor, which
/// must end when the job does.
inline void await_actors(caf::actor_system& system,
                         const std::function<void(const std::string&)>& log,
                         std::chrono::milliseconds log_after = std::chrono::seconds{10}) {
  const auto begin = std::chrono::steady_clock::now();
  // CAF's own wait has no time limit.
  for (auto pause = std::chrono::milliseconds{1}; system.registry().running() > 0;) {
    if (std::chrono::steady_clock::now() - begin > log_after) {
      if (log)
        log("the end of the job waits for " + std::to_string(system.registry().running()) +
            " actors that have not ended; an actor of the program's own must monitor "
            "JobActors::job, and quit when that has ended");
      break;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds{20});
  }
  system.await_all_actors_done();
}

}  // namespace starling::actor
