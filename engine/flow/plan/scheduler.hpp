/// The scheduler of a job: decides which task runs next, which failed task is tried again, and when
/// the job has ended. It runs nothing itself; a driver asks for tasks and reports what became of
/// them. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/plan.hpp"

namespace starling::flow {

/// One attempt to compute one part of one stage.
struct TaskId {
  StageId stage = 0;
  Part part = 0;
  /// The number of failures of this part before.
  std::uint32_t attempt = 0;

  bool operator==(const TaskId&) const = default;
};

class Scheduler {
 public:
  /// A part that fails `attempts_max` times ends the job. Requires: attempts_max > 0.
  Scheduler(const Plan& plan, std::uint32_t attempts_max);

  /// Returns the next task that can run now: of the stages whose inputs are done, the first in the
  /// plan. Returns nothing if all such tasks run already, or if the job has ended.
  [[nodiscard]] std::optional<TaskId> next();

  /// Records that a task has returned its output. Returns the stages whose outputs no other task
  /// will read.
  [[nodiscard]] std::vector<StageId> on_done(const TaskId& task);
  /// Records that a task has failed. It is tried again, or the job ends with `error`.
  void on_failed(const TaskId& task, Error error);

  /// True once no task will start any more. Tasks may still run.
  [[nodiscard]] bool has_ended() const { return error_ || done_stages_ == stages_.size(); }
  /// The number of tasks that have been returned by next() and not been reported yet.
  [[nodiscard]] std::size_t running() const { return running_; }
  /// Why the job failed; null if it has not.
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] std::uint32_t attempts_max() const { return attempts_max_; }

 private:
  struct StageState {
    Part parts = 0;
    /// The first part that has not been started yet.
    Part next_part = 0;
    Part done_parts = 0;
    std::size_t inputs_left = 0;
    /// The stages that read this one, and how many of them are not done.
    std::vector<StageId> readers;
    std::size_t readers_left = 0;
  };

  /// Records that all parts of a stage are done; adds the stages whose outputs nobody needs now.
  void on_stage_done(StageId id, std::vector<StageId>& unneeded);

  const Plan& plan_;
  const std::uint32_t attempts_max_;
  std::vector<StageState> stages_;
  /// Failed tasks to try again.
  std::vector<TaskId> retries_;
  std::size_t done_stages_ = 0;
  std::size_t running_ = 0;
  std::optional<Error> error_;
};

}  // namespace starling::flow
