/// The scheduler of a job: decides which task runs next, which failed or lost part is computed
/// again, and when the job has ended. It runs nothing itself; a driver asks for tasks and reports
/// what became of them. Not thread-safe.
///
/// Only those parts are computed that the last stage needs. A lost output is computed again if a
/// stage that is not done yet reads it. The lost outputs from which it is made are computed again
/// before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/flow/plan/plan.hpp"

namespace starling::flow {

/// One attempt to compute one part of one stage.
struct TaskId {
  StageId stage = 0;
  Part part = 0;
  /// The number of earlier failures of this part.
  std::uint32_t attempt = 0;

  bool operator==(const TaskId&) const = default;
};

/// The facts about a stage that the scheduler needs.
struct StageShape {
  Part parts = 0;
  /// The stages whose outputs it reads; all have smaller ids.
  std::vector<StageId> inputs = {};
};

class Scheduler {
 public:
  /// A part that fails `attempts_max` times ends the job. Requires: there is a stage, and
  /// attempts_max > 0.
  Scheduler(std::vector<StageShape> stages, std::uint32_t attempts_max);
  /// Starts with the outputs that the plan keeps from earlier jobs: these parts are done.
  Scheduler(const Plan& plan, std::uint32_t attempts_max);

  /// Returns the next task that can run now: of the stages whose inputs are done, the first in the
  /// plan. Returns nothing if all such tasks run already, or if the job has ended.
  [[nodiscard]] std::optional<TaskId> next();

  /// Records that a task has returned its output. Returns the stages whose outputs no other task
  /// will read.
  std::vector<StageId> on_done(const TaskId& task);
  /// Records that a task has failed. It is tried again, or the job ends with `error`.
  void on_failed(const TaskId& task, Error error);

  // --- for outputs and tasks on several nodes ---

  /// Records that an output exists, whoever has made it.
  void on_output(StageId stage, Part part);
  /// Records that a task runs that another scheduler has started.
  void on_running(StageId stage, Part part);
  /// Records that a running task will not return, through no fault of its own; or that an output
  /// is gone. The part is computed again if it is needed.
  void on_lost(StageId stage, Part part);

  /// True once no task will start any more, unless an output is lost. Tasks may still run.
  [[nodiscard]] bool has_ended() const { return error_ || is_complete(last()); }
  [[nodiscard]] bool is_complete(StageId stage) const {
    return stages_[stage].done == stages_[stage].parts.size();
  }
  /// The number of tasks that run: next() has returned them or on_running() has reported them, and
  /// nothing has reported their end.
  [[nodiscard]] std::size_t running() const { return running_; }
  /// Why the job failed; null if it has not.
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] std::uint32_t attempts_max() const { return attempts_max_; }

 private:
  enum class PartState : std::uint8_t { missing, running, done };
  struct StageState {
    std::vector<PartState> parts;
    std::vector<StageId> inputs;
    std::vector<StageId> readers;
    /// How many parts are done.
    std::size_t done = 0;
    /// No part before this one is missing.
    Part first_missing = 0;
    /// How many inputs are not complete.
    std::size_t inputs_left = 0;
    /// False if no stage that is not complete will read its outputs.
    bool is_needed = false;
    /// By part: how often it has failed, if it has.
    std::map<Part, std::uint32_t> failures = {};
  };

  [[nodiscard]] StageId last() const { return static_cast<StageId>(stages_.size() - 1); }
  void set(StageId stage, Part part, PartState state);
  /// Finds out which stages are needed. next() calls it after a failed task, a lost part, or an
  /// on_output() that completes a stage.
  void review();

  const std::uint32_t attempts_max_;
  std::vector<StageState> stages_;
  std::size_t running_ = 0;
  bool must_review_ = true;
  std::optional<Error> error_;
};

}  // namespace starling::flow
