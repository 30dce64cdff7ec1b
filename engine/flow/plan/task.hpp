/// A Task tells the function of a stage which part to compute, and holds the outputs of the stages
/// that it reads. One thread uses a Task.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/flow/plan/kept_outputs.hpp"
#include "starling/engine/flow/plan/stage.hpp"
#include "starling/engine/flow/plan/storage.hpp"

namespace starling::flow {

/// The outputs of one stage, and the stage.
struct StageOutputs {
  const Stage* stage = nullptr;
  std::shared_ptr<const KeptOutputs::Parts> parts;
};

class Task {
 public:
  /// `inputs` has the outputs of the stage's inputs, in their order.
  Task(Part part, bool is_last_attempt, std::vector<StageOutputs> inputs, Storage& storage,
       std::shared_ptr<SpillFile> file)
      : part_(part),
        is_last_attempt_(is_last_attempt),
        inputs_(std::move(inputs)),
        storage_(storage),
        file_(std::move(file)) {}

  [[nodiscard]] Part part() const noexcept { return part_; }
  /// True if a failure of this task ends the job. It should then say exactly at which record.
  [[nodiscard]] bool is_last_attempt() const noexcept { return is_last_attempt_; }

  /// Returns the outputs of all parts of `stage`, of which each has the type O. Requires: `stage`
  /// is an input of this task's stage.
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

  [[nodiscard]] Storage& storage() const noexcept { return storage_; }
  /// The file to which tasks of this stage spill.
  [[nodiscard]] const std::shared_ptr<SpillFile>& file() const noexcept { return file_; }

 private:
  Part part_;
  bool is_last_attempt_;
  std::vector<StageOutputs> inputs_;
  Storage& storage_;
  std::shared_ptr<SpillFile> file_;
};

}  // namespace starling::flow
