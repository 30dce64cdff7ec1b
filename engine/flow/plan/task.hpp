/// A Task tells the function of a stage which part to compute, and holds the outputs of the stages
/// that it reads. One thread uses a Task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/flow/plan/failure.hpp"
#include "starling/engine/flow/plan/kept_outputs.hpp"
#include "starling/engine/flow/plan/progress.hpp"
#include "starling/engine/flow/plan/stage.hpp"
#include "starling/engine/flow/plan/task_memory.hpp"

namespace starling::flow {

/// The outputs of one stage, and the stage.
struct StageOutputs {
  const Stage* stage = nullptr;
  std::shared_ptr<const KeptOutputs::Parts> parts;
};

class Task {
 public:
  /// `inputs` has the outputs of the stage's inputs, in their order. `is_stopped` may be null; it
  /// is asked now and then, and once it returns true, the task ends with a TaskFailure.
  Task(Part part, bool is_last_attempt, std::vector<StageOutputs> inputs, TaskMemory& memory,
       std::shared_ptr<SpillFile> file, const std::function<bool()>& is_stopped = {})
      : part_(part),
        is_last_attempt_(is_last_attempt),
        inputs_(std::move(inputs)),
        memory_(memory),
        file_(std::move(file)),
        is_stopped_(is_stopped) {}

  [[nodiscard]] Part part() const noexcept { return part_; }
  /// True if a failure of this task ends the job. It should then say exactly at which record.
  [[nodiscard]] bool is_last_attempt() const noexcept { return is_last_attempt_; }

  /// Returns the outputs of all parts of `stage`. Requires: each has the type O, and `stage` is an
  /// input of this task's stage.
  template <class O>
  [[nodiscard]] std::vector<const O*> outputs(const StagePtr& stage) const {
    for (const StageOutputs& input : inputs_) {
      if (input.stage != stage.get()) continue;
      std::vector<const O*> typed;
      for (const Output& output : *input.parts)
        typed.push_back(static_cast<const O*>(output.get()));
      return typed;
    }
    STARLING_CHECK(!"a task reads a stage that is no input of its own");
    return {};
  }

  [[nodiscard]] TaskMemory& memory() const noexcept { return memory_; }
  /// The file to which tasks of this stage spill.
  [[nodiscard]] const std::shared_ptr<SpillFile>& file() const noexcept { return file_; }

  /// The number of records after which a task asks again whether it was stopped.
  static constexpr std::uint64_t asks_every = 256;

  /// Counts records that the task has read from its sources, at most `asks_every` at a time. Throws
  /// TaskFailure if the job was stopped.
  void count_read(std::uint64_t records = 1) const {
    const std::uint64_t before = counts_.records_read / asks_every;
    counts_.records_read += records;
    if (counts_.records_read / asks_every > before) check_stopped();
  }
  /// For loops that may make many records of one that was read, or read many before the first is
  /// counted. Counts a record that the loop makes. Throws TaskFailure if the job was stopped.
  void count_made() const {
    if (++made_ % asks_every == 0) check_stopped();
  }
  void count_written(std::uint64_t records, std::uint64_t bytes) const {
    counts_.records_written += records;
    counts_.bytes_written += bytes;
  }
  void count_spilled(std::uint64_t bytes) const { counts_.bytes_spilled += bytes; }
  [[nodiscard]] const TaskCounts& counts() const noexcept { return counts_; }

 private:
  void check_stopped() const {
    if (is_stopped_ && is_stopped_()) throw TaskFailure{Error{"the job was stopped"}};
  }

  Part part_;
  bool is_last_attempt_;
  std::vector<StageOutputs> inputs_;
  TaskMemory& memory_;
  std::shared_ptr<SpillFile> file_;
  std::function<bool()> is_stopped_;
  /// Counting changes nothing that a function of a task can see.
  mutable TaskCounts counts_;
  /// How many records count_made() has counted.
  mutable std::uint64_t made_ = 0;
};

}  // namespace starling::flow
