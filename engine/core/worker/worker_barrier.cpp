/// The part of a worker that passes barriers and reports its step to others.
#include <utility>

#include "starling/engine/core/worker/worker.hpp"

namespace starling::core {

void Worker::ask_to_pass_barrier(const Context& context) {
  if (!gate_) {
    const bool goes_on = step_ < run_end_;
    context.send(ToCoordinator{}, Arrived{options_.id, step_, goes_on, descent_});
    awaited_.reset();
    if (goes_on) pass_barrier(context);
  } else if (gate_->begin(context, step_, step_times_.recheck_interval(), descent_)) {
    pass_barrier(context);
  }
}

void Worker::pass_barrier(const Context& context) {
  wait_time_ += context.now - std::exchange(wait_started_at_, context.now);
  begin_step(context);
}

void Worker::on(const Context& context, const Proceed& proceed) {
  if (phase_ == Phase::entering && !gate_) return begin_at(context, proceed.step);
  if (phase_ != Phase::waiting || gate_ || proceed.step != step_) return;
  run_end_ = proceed.until;
  floor_ = proceed.floor;
  awaited_ = proceed.awaited;
  pass_barrier(context);
}

void Worker::go_on(const Context& context) {
  if (phase_ == Phase::entering)
    begin_at(context, gate_->entry_step());
  else
    pass_barrier(context);
}

void Worker::on_timer(const Context& context) {
  if (gate_ && gate_->on_timer(context)) go_on(context);
}

void Worker::on(const Context& context, const StepAnswer& answer) {
  if (gate_ && gate_->on(context, answer)) go_on(context);
}

void Worker::on(const Context& context, const Notice& notice) {
  if (gate_ && gate_->on(context, notice)) go_on(context);
}

void Worker::on(const Context& context, const StepQuery& query) {
  ++times_drawn_;
  context.send(ToMember{query.from},
               StepAnswer{options_.id, query.draw, reported_step(),
                          gate_ ? gate_->pace_report(context.now) : std::nullopt});
}

void Worker::on(const Context& context, const NotifyRequest& request) {
  NotifyRequest& latest = notify_requests_.try_emplace(request.from, request).first->second;
  if (latest.draw > request.draw) return;  // a newer request has come before this one
  latest = request;
  if (reported_step() < request.floor) return;
  context.send(ToMember{request.from}, Notice{options_.id, request.draw});
  notify_requests_.erase(request.from);
}

void Worker::notify_waiters(const Context& context) {
  const Step step = reported_step();
  std::erase_if(notify_requests_, [&](const auto& entry) {
    const NotifyRequest& request = entry.second;
    if (step < request.floor) return false;
    context.send(ToMember{request.from}, Notice{options_.id, request.draw});
    return true;
  });
}

Step Worker::reported_step() const noexcept {
  if (phase_ == Phase::done) return barrier::finished;
  return phase_ == Phase::entering || begins_first_ ? not_begun : step_;
}

WorkerStatus Worker::report_status() {
  run_end_ = 0;
  const auto status_in = [&](WorkerStatus::Phase phase) {
    return WorkerStatus{
        .member = options_.id, .phase = phase, .step = step_, .leaves = is_leaving_};
  };
  switch (phase_) {
    case Phase::idle:
    case Phase::entering:
      return status_in(WorkerStatus::Phase::entering);
    case Phase::waiting:
      return status_in(WorkerStatus::Phase::waiting);
    case Phase::done:
      return status_in(WorkerStatus::Phase::ended);
    default:
      return status_in(WorkerStatus::Phase::going);
  }
}

SampleGate::Counts Worker::draw_counts() const {
  return gate_ ? gate_->counts() : SampleGate::Counts{};
}

}  // namespace starling::core
