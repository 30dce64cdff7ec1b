#include "starling/engine/flow/plan/scheduler.hpp"

#include "starling/base/check.hpp"

namespace starling::flow {

Scheduler::Scheduler(const Plan& plan, std::uint32_t attempts_max)
    : plan_(plan), attempts_max_(attempts_max), stages_(plan.stages.size()) {
  STARLING_CHECK(attempts_max > 0);
  for (StageId id = 0; id < stages_.size(); ++id) {
    const PlannedStage& planned = plan.stages[id];
    stages_[id].parts = planned.stage->description.parts;
    stages_[id].inputs_left = planned.inputs.size();
    for (const StageId input : planned.inputs) {
      STARLING_CHECK(input < id);
      stages_[input].readers.push_back(id);
      ++stages_[input].readers_left;
    }
  }
  std::vector<StageId> unneeded;
  for (StageId id = 0; id < stages_.size(); ++id) {
    StageState& stage = stages_[id];
    if (plan.stages[id].kept) stage.next_part = stage.done_parts = stage.parts;
    if (plan.stages[id].inputs.empty() && stage.done_parts == stage.parts)
      on_stage_done(id, unneeded);
  }
}

std::optional<TaskId> Scheduler::next() {
  if (has_ended()) return std::nullopt;
  if (!retries_.empty()) {
    const TaskId task = retries_.back();
    retries_.pop_back();
    ++running_;
    return task;
  }
  for (StageId id = 0; id < stages_.size(); ++id) {
    StageState& stage = stages_[id];
    if (stage.inputs_left > 0 || stage.next_part == stage.parts) continue;
    ++running_;
    return TaskId{.stage = id, .part = stage.next_part++};
  }
  return std::nullopt;
}

std::vector<StageId> Scheduler::on_done(const TaskId& task) {
  STARLING_CHECK(running_ > 0);
  --running_;
  std::vector<StageId> unneeded;
  if (++stages_[task.stage].done_parts == stages_[task.stage].parts)
    on_stage_done(task.stage, unneeded);
  return unneeded;
}

void Scheduler::on_failed(const TaskId& task, Error error) {
  STARLING_CHECK(running_ > 0);
  --running_;
  if (task.attempt + 1 < attempts_max_) {
    retries_.push_back({task.stage, task.part, task.attempt + 1});
  } else if (!error_) {
    if (attempts_max_ > 1)
      error.message += " (after " + std::to_string(attempts_max_) + " attempts)";
    error_ = std::move(error);
  }
}

void Scheduler::on_stage_done(StageId id, std::vector<StageId>& unneeded) {
  ++done_stages_;
  for (const StageId input : plan_.stages[id].inputs)
    if (--stages_[input].readers_left == 0) unneeded.push_back(input);
  for (const StageId reader : stages_[id].readers) {
    StageState& stage = stages_[reader];
    if (--stage.inputs_left == 0 && stage.parts == 0) on_stage_done(reader, unneeded);
  }
}

}  // namespace starling::flow
