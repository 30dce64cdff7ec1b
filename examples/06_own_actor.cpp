// A user's own actor among Starling's: every 100 ms a watcher asks every worker of a training job
// for its step, and it stops the job when the median step has reached 200. The watcher starts with
// each job that names it, in one process or on each node of a cluster, where it asks the workers of
// the other nodes too. starling/actor/interfaces.hpp lists what an actor may ask and send.
//
//     cmake --preset dev && cmake --build --preset dev --target 06_own_actor
//     build/dev/examples/06_own_actor train --actors watcher --data linear:d=100,n=5000
//         --delay exp:10ms --seconds 60 --quiet       (one line)
//
// prints, for two or three seconds, the answers (the steps differ from run to run), and then the
// summary of the job:
//
//     steps 0 0 0 0
//     steps 10 11 12 13
//     ...
//     steps 203 204 204 207
//     stops the job at a median step of 204
//
// On three nodes, here on one machine:
//
//     build/dev/examples/06_own_actor node --listen 127.0.0.1:7401 &
//     build/dev/examples/06_own_actor node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/06_own_actor node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/06_own_actor submit --to 127.0.0.1:7402 --workers 6 --actors watcher
//         --data linear:d=100,n=5000 --delay exp:10ms --seconds 60
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/starling.hpp"

using namespace starling;

constexpr core::Step median_to_reach = 200;

class Watcher : public caf::event_based_actor {
 public:
  Watcher(caf::actor_config& config, actor::JobActorsPtr job)
      : caf::event_based_actor(config), job_(std::move(job)) {
    monitor(job_->job);
    // The job waits for this actor before it ends, so the actor quits when the job is over.
    set_down_handler([this](const caf::down_msg&) { quit(); });
  }

  caf::behavior make_behavior() override {
    actor::send(this, this, actor::timer_atom_v);
    return {[this](actor::timer_atom) { look(); }};
  }

  /// Releases the job's actors.
  void on_exit() override { job_.reset(); }

 private:
  /// Asks for the present workers, because on nodes workers join and leave. Does not block: the
  /// answers arrive as messages.
  void look() {
    actor::send_later(this, this, std::chrono::milliseconds{100}, actor::timer_atom_v);
    request(job_->job, std::chrono::seconds{1}, actor::actors_atom_v)
        .then([this](const actor::JobActorsPtr& present) { ask_everyone(present); },
              [](const caf::error&) {});  // the job is over
  }

  void ask_everyone(const actor::JobActorsPtr& present) {
    job_ = present;
    steps_.clear();
    unanswered_ = job_->workers.size();
    for (const auto& worker : job_->workers)
      request(worker, std::chrono::seconds{1}, actor::step_atom_v)
          .then([this](core::Step step) { record_answer(step); },
                [this](const caf::error&) { record_answer(std::nullopt); });  // it left, or died
  }

  /// Evaluates a round of questions when its last answer has arrived.
  void record_answer(std::optional<core::Step> step) {
    if (step) steps_.push_back(*step);
    if (--unanswered_ > 0 || steps_.empty()) return;
    std::ranges::sort(steps_);
    std::printf("steps");
    for (const core::Step answer : steps_) std::printf(" %lu", static_cast<unsigned long>(answer));
    std::printf("\n");
    const core::Step median = steps_[steps_.size() / 2];
    if (median >= median_to_reach && !std::exchange(has_stopped_, true)) {
      std::printf("stops the job at a median step of %lu\n", static_cast<unsigned long>(median));
      actor::send(this, job_->job, core::Stop{});
    }
    std::fflush(stdout);
  }

  actor::JobActorsPtr job_;
  std::vector<core::Step> steps_;
  std::size_t unanswered_ = 0;
  bool has_stopped_ = false;
};

int main(int argc, char** argv) {
  Registry registry;
  registry.actors("watcher", "prints the workers' steps, and stops the job at a median of 200",
                  [](const actor::JobActorsPtr& job, caf::actor_system& system) {
                    system.spawn<Watcher>(job);
                  });
  return starling::main(argc, argv, std::move(registry));
}
