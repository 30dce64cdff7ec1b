/// Records what each worker of a job does when: the intervals in which it reads, computes, writes
/// or waits. Their number is bounded, so that a long job does not fill the memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "starling/actor/job/interval.hpp"
#include "starling/actor/job/trace_buffer.hpp"

namespace starling::actor {

/// The intervals of one worker. They follow each other without a gap, from the start of the job.
/// Intervals without a duration are left out. While the job runs, only the worker's actor uses it.
/// Aligned to a cache line, because workers' actors on different threads write at the same time.
class alignas(64) WorkerTimeline {
 public:
  /// Requires: `intervals_max` > 0.
  explicit WorkerTimeline(std::size_t intervals_max) : intervals_max_(intervals_max) {
    intervals_.reserve(intervals_max);  // takes memory only when it is used
  }
  /// Adds the intervals of `worker`, which begins at `now`, to `buffer` and keeps none itself.
  WorkerTimeline(std::shared_ptr<TraceBuffer> buffer, core::MemberId worker, core::Time now)
      : buffer_(std::move(buffer)), worker_(worker) {
    open_.from = now;
  }

  /// Records a change of the worker's phase, step or laggard. Called after each event of the
  /// worker, with the time of that event.
  void follow(const core::Worker& worker, core::Time now) {
    if (worker.phase() != phase_ || worker.step() != step_)
      change(worker, now);
    else if (worker.is_waiting())
      set_awaited(worker.laggard(), now);
  }

  /// Called when the step has been computed and its update is held back, by a delay.
  void hold_back(core::Time now) { begin(now, Activity::delay, step_ + 1); }
  /// Called when the computation waits until the job's pause is over.
  void pause(core::Time now) { begin(now, Activity::pause, step_ + 1); }
  /// Called when the step is computed after a delay, as workers that hand in early do, or after a
  /// pause.
  void compute(core::Time now) { begin(now, Activity::compute, step_ + 1); }

  /// Called when the worker's actor ends.
  void end(core::Time now) {
    close(now);
    is_over_ = true;
  }

  [[nodiscard]] const std::vector<Interval>& intervals() const noexcept { return intervals_; }
  /// The number of intervals that were not recorded, because there were `intervals_max` before.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  /// The time from which on intervals were not recorded; nullopt if all were.
  [[nodiscard]] std::optional<core::Time> dropped_from() const noexcept { return dropped_from_; }

 private:
  [[nodiscard]] static Activity activity_of(const core::Worker& worker);

  void change(const core::Worker& worker, core::Time now);
  void set_awaited(std::optional<core::MemberId> laggard, core::Time now);
  void begin(core::Time now, Activity activity, core::Step step);
  void close(core::Time now);

  std::size_t intervals_max_ = 0;
  std::vector<Interval> intervals_;
  /// Takes the intervals on nodes; null in one process.
  std::shared_ptr<TraceBuffer> buffer_;
  core::MemberId worker_ = 0;
  /// The current interval, whose end is not known yet.
  Interval open_;
  core::Worker::Phase phase_ = core::Worker::Phase::idle;
  core::Step step_ = 0;
  bool is_over_ = false;
  std::uint64_t dropped_ = 0;
  std::optional<core::Time> dropped_from_;
};

/// The intervals of all workers of one job in one process. Any thread may read them once the job
/// has ended.
class Timeline {
 public:
  /// This many intervals take 40 MB of memory.
  static constexpr std::size_t intervals_max_default = 1'000'000;

  /// The workers share `intervals_max` evenly; each has one interval at least. Requires:
  /// `workers` > 0.
  explicit Timeline(std::size_t workers, std::size_t intervals_max = intervals_max_default)
      : intervals_max_(intervals_max) {
    workers_.reserve(workers);
    while (workers_.size() < workers)
      workers_.emplace_back(std::max<std::size_t>(1, intervals_max / workers));
  }

  [[nodiscard]] WorkerTimeline& of(core::MemberId worker) { return workers_.at(worker); }

  [[nodiscard]] const std::vector<WorkerTimeline>& workers() const noexcept { return workers_; }
  [[nodiscard]] std::size_t intervals_max() const noexcept { return intervals_max_; }
  /// The number of intervals of all workers that were not recorded.
  [[nodiscard]] std::uint64_t dropped() const;
  /// The first time from which on intervals of a worker were not recorded; nullopt if all were.
  [[nodiscard]] std::optional<core::Time> dropped_from() const;

 private:
  std::size_t intervals_max_;
  std::vector<WorkerTimeline> workers_;
};

}  // namespace starling::actor
