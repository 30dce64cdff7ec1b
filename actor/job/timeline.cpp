#include "starling/actor/job/timeline.hpp"

#include <array>

namespace starling::actor {

std::string_view name_of(Activity activity) {
  constexpr std::array<std::string_view, 9> names{"start", "plan", "read", "compute", "delay",
                                                  "write", "wait", "hold", "pause"};
  return names.at(static_cast<std::size_t>(activity));
}

Activity WorkerTimeline::activity_of(const core::Worker& worker) {
  using Phase = core::Worker::Phase;
  if (worker.is_waiting()) return Activity::wait;
  switch (worker.phase()) {
    case Phase::planning:
      return Activity::plan;
    case Phase::reading:
      return Activity::read;
    case Phase::computing:
      return Activity::compute;
    case Phase::writing:
      return Activity::write;
    case Phase::held:
      return Activity::hold;
    case Phase::waiting:  // is_waiting() is true
    case Phase::idle:
    case Phase::entering:  // only in jobs of a cluster
    case Phase::done:
    case Phase::failed:
      break;
  }
  return Activity::start;
}

void WorkerTimeline::change(const core::Worker& worker, core::Time now) {
  using Phase = core::Worker::Phase;
  phase_ = worker.phase();
  step_ = worker.step();
  if (phase_ == Phase::idle) return;
  // A coordinator does not say for whom a worker waits until it lets that worker go on.
  if (open_.activity == Activity::wait && !open_.awaited) open_.awaited = worker.awaited();
  begin(now, activity_of(worker), phase_ == Phase::waiting ? step_ : step_ + 1);
  open_.awaited = worker.laggard();
  if (phase_ == Phase::done || phase_ == Phase::failed) is_over_ = true;
}

/// The interval goes on if the worker still waits for the same laggard. Until the worker's first
/// draw is decided, it is not known for whom the worker waits.
void WorkerTimeline::set_awaited(std::optional<core::MemberId> laggard, core::Time now) {
  if (!laggard || laggard == open_.awaited) return;
  if (open_.awaited) begin(now, Activity::wait, step_);
  open_.awaited = laggard;
}

void WorkerTimeline::begin(core::Time now, Activity activity, core::Step step) {
  close(now);
  open_ = {.from = now, .to = now, .step = step, .activity = activity};
}

void WorkerTimeline::close(core::Time now) {
  if (is_over_ || now <= open_.from) return;
  if (buffer_) {
    open_.to = now;
    return buffer_->add(worker_, open_);
  }
  if (intervals_.size() == intervals_max_) {
    if (dropped_++ == 0) dropped_from_ = open_.from;
    return;
  }
  open_.to = now;
  intervals_.push_back(open_);
}

std::uint64_t Timeline::dropped() const {
  std::uint64_t dropped = 0;
  for (const WorkerTimeline& worker : workers_) dropped += worker.dropped();
  return dropped;
}

std::optional<core::Time> Timeline::dropped_from() const {
  std::optional<core::Time> first;
  for (const WorkerTimeline& worker : workers_)
    if (const auto from = worker.dropped_from(); from && (!first || *from < *first)) first = from;
  return first;
}

}  // namespace starling::actor
