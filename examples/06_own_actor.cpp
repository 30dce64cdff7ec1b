// A user's own actor among Starling's: every 100 ms a watcher asks every worker of a training job
// for its step, and it ends the job when the median step has reached 200.
// starling/actor/interfaces.hpp lists the messages that each actor handles.
//
//     cmake --preset dev && cmake --build --preset dev --target 06_own_actor
//     build/dev/examples/06_own_actor
//
// prints, for two or three seconds, the answers (the steps differ from run to run):
//
//     steps 0 0 0 0
//     steps 10 11 12 13
//     ...
//     steps 203 204 204 207
//     stopped at a median step of 205
#include <algorithm>
#include <cstdio>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/actor/train/train.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/tabular/linear_models.hpp"

using namespace starling;

constexpr core::Step median_to_reach = 200;

class Watcher : public caf::event_based_actor {
 public:
  Watcher(caf::actor_config& config, actor::DirectoryPtr job)
      : caf::event_based_actor(config), job_(std::move(job)) {
    monitor(job_->observer);
    // The job waits for this actor before it ends, so the actor quits when the observer has ended.
    set_down_handler([this](const caf::down_msg&) { quit(); });
  }

  caf::behavior make_behavior() override {
    actor::send(this, this, actor::timer_atom_v);
    return {[this](actor::timer_atom) { ask_everyone(); }};
  }

  /// Releases the job's actors.
  void on_exit() override { job_.reset(); }

 private:
  /// Does not block: the answers arrive as messages. record_step() evaluates a round when its last
  /// answer has arrived.
  void ask_everyone() {
    steps_.clear();
    for (const auto& worker : job_->workers)
      request(worker, std::chrono::seconds{1}, actor::step_atom_v).then([this](core::Step step) {
        record_step(step);
      });
    actor::send_later(this, this, std::chrono::milliseconds{100}, actor::timer_atom_v);
  }

  void record_step(core::Step step) {
    steps_.push_back(step);
    if (steps_.size() < job_->workers.size()) return;
    std::ranges::sort(steps_);
    std::printf("steps");
    for (const core::Step answer : steps_) std::printf(" %lu", static_cast<unsigned long>(answer));
    std::printf("\n");
    if (steps_[steps_.size() / 2] >= median_to_reach)
      actor::send(this, job_->observer, core::Stop{});
  }

  actor::DirectoryPtr job_;
  std::vector<core::Step> steps_;
};

int main() {
  const auto source = models::Source::parse("linear:d=100,n=5000").value();
  const models::Table data = models::load(source, 1).value();
  const auto model = models::Linear<float>::parse(Spec::parse("linear").value(), data).value();

  actor::TrainOptions options;
  options.job.delay = parse_distribution("exp:10ms").value();
  options.job.time = std::chrono::minutes{1};
  options.job.on_start = [](const actor::DirectoryPtr& job, caf::actor_system& system) {
    system.spawn<Watcher>(job);
  };
  const auto outcome = actor::train<models::Linear<float>>(model, data, nullptr, options);
  if (!outcome) return std::fprintf(stderr, "%s\n", outcome.error().message.c_str()), 1;
  const core::Step median = outcome->last.spread.median;
  if (outcome->end != actor::Outcome::End::stopped || median < median_to_reach) return 1;
  std::printf("stopped at a median step of %lu\n", static_cast<unsigned long>(median));
}
