/// A user's own actor for the tests: it asks the members of a job, near and far, all questions.
#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "starling/actor/interfaces.hpp"

namespace starling::program {

/// Every 50 ms, asks each worker for its step, the owners for the first range and, in central mode,
/// the coordinator for all steps. Prints a line when the answers have come:
///
///     2 of 3 workers, steps 57, range of 650, lag 2
///
/// `range of 0` says that no owner has answered, and `lag -1` that no coordinator has. If `stops`
/// is set, stops the job once the workers that answer have made this number of steps together.
class Questioner : public caf::event_based_actor {
 public:
  Questioner(caf::actor_config& config, actor::JobActorsPtr job, std::optional<core::Step> stops)
      : caf::event_based_actor(config), job_(std::move(job)), stops_(stops) {
    monitor(job_->job);
    set_down_handler([this](const caf::down_msg&) { quit(); });
  }

  caf::behavior make_behavior() override {
    actor::send(this, this, actor::timer_atom_v);
    return {[this](actor::timer_atom) { ask(); }};
  }
  void on_exit() override { job_.reset(); }

 private:
  static constexpr std::chrono::milliseconds deadline{500};

  void ask() {
    answered_ = 0;
    steps_ = 0;
    range_size_ = 0;
    lag_ = -1;
    pending_ = job_->workers.size() + 1 + (job_->coordinator ? 1 : 0);
    const auto no_answer = [this](const caf::error&) { on_answer(); };
    for (const actor::MemberHandle& worker : job_->workers)
      request(worker, deadline, actor::step_atom_v)
          .then(
              [this](core::Step step) {
                ++answered_;
                steps_ += step;
                on_answer();
              },
              no_answer);
    request(job_->model, deadline, actor::read_atom_v, core::AskValue{0, nullptr})
        .then(
            [this](const core::Value& value) {
              range_size_ = value.value.count;
              on_answer();
            },
            no_answer);
    if (job_->coordinator)
      request(job_->coordinator, deadline, actor::steps_atom_v)
          .then(
              [this](const core::StepsReport& report) {
                lag_ = static_cast<long>(report.max_lag);
                on_answer();
              },
              no_answer);
  }

  void on_answer() {
    if (--pending_ > 0) return;
    std::printf("%zu of %zu workers, steps %llu, range of %zu, lag %ld\n", answered_,
                job_->workers.size(), static_cast<unsigned long long>(steps_), range_size_, lag_);
    std::fflush(stdout);
    if (stops_ && steps_ >= *stops_) actor::send(this, job_->job, core::Stop{});
    actor::send_later(this, this, std::chrono::milliseconds{50}, actor::timer_atom_v);
  }

  actor::JobActorsPtr job_;
  std::optional<core::Step> stops_;
  std::size_t pending_ = 0;
  std::size_t answered_ = 0;
  core::Step steps_ = 0;
  std::size_t range_size_ = 0;
  long lag_ = -1;
};

}  // namespace starling::program
