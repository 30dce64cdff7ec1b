#include "starling/engine/flow/plan/scheduler.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::flow {
namespace {

std::vector<StageShape> shapes_of(const Plan& plan) {
  std::vector<StageShape> shapes;
  for (const PlannedStage& planned : plan.stages)
    shapes.push_back({planned.stage->description.parts, planned.inputs});
  return shapes;
}

}  // namespace

Scheduler::Scheduler(std::vector<StageShape> stages, std::uint32_t attempts_max)
    : attempts_max_(attempts_max), stages_(stages.size()) {
  STARLING_CHECK(attempts_max > 0 && !stages.empty());
  for (StageId id = 0; id < stages_.size(); ++id) {
    stages_[id].parts.resize(stages[id].parts);
    stages_[id].inputs = std::move(stages[id].inputs);
    for (const StageId input : stages_[id].inputs) {
      STARLING_CHECK(input < id);
      stages_[input].readers.push_back(id);
    }
  }
}

Scheduler::Scheduler(const Plan& plan, std::uint32_t attempts_max)
    : Scheduler(shapes_of(plan), attempts_max) {
  for (StageId id = 0; id < stages_.size(); ++id)
    for (Part part = 0; plan.stages[id].kept && part < stages_[id].parts.size(); ++part)
      on_output(id, part);
}

std::optional<TaskId> Scheduler::next() {
  if (has_ended()) return std::nullopt;
  if (must_review_) review();
  for (StageId id = 0; id < stages_.size(); ++id) {
    StageState& stage = stages_[id];
    if (!stage.is_needed || stage.inputs_left > 0) continue;
    while (stage.first_missing < stage.parts.size() &&
           stage.parts[stage.first_missing] != PartState::missing)
      ++stage.first_missing;
    if (stage.first_missing == stage.parts.size()) continue;
    const Part part = stage.first_missing;
    set(id, part, PartState::running);
    const auto failed = stage.failures.find(part);
    return TaskId{id, part, failed == stage.failures.end() ? 0 : failed->second};
  }
  return std::nullopt;
}

std::vector<StageId> Scheduler::on_done(const TaskId& task) {
  if (stages_[task.stage].parts[task.part] == PartState::done) return {};
  set(task.stage, task.part, PartState::done);
  std::vector<StageId> unneeded;
  if (!is_complete(task.stage)) return unneeded;
  for (const StageId reader : stages_[task.stage].readers) --stages_[reader].inputs_left;
  const auto is_done = [this](StageId id) { return is_complete(id); };
  for (const StageId input : stages_[task.stage].inputs)
    if (std::ranges::all_of(stages_[input].readers, is_done)) unneeded.push_back(input);
  return unneeded;
}

void Scheduler::on_failed(const TaskId& task, Error error) {
  const std::uint32_t failures = ++stages_[task.stage].failures[task.part];
  set(task.stage, task.part, PartState::missing);
  must_review_ = true;
  if (failures < attempts_max_ || error_) return;
  if (attempts_max_ > 2) error.message += " (after " + std::to_string(attempts_max_) + " attempts)";
  error_ = std::move(error);
}

void Scheduler::on_output(StageId stage, Part part) {
  set(stage, part, PartState::done);
  if (is_complete(stage)) must_review_ = true;
}

void Scheduler::on_running(StageId stage, Part part) {
  if (stages_[stage].parts[part] == PartState::missing) set(stage, part, PartState::running);
}

void Scheduler::on_lost(StageId stage, Part part) {
  set(stage, part, PartState::missing);
  must_review_ = true;
}

void Scheduler::set(StageId id, Part part, PartState state) {
  StageState& stage = stages_[id];
  PartState& now = stage.parts[part];
  if (now == PartState::running) --running_;
  if (now == PartState::done) --stage.done;
  now = state;
  if (state == PartState::running) ++running_;
  if (state == PartState::done) ++stage.done;
  if (state == PartState::missing) stage.first_missing = std::min(stage.first_missing, part);
}

void Scheduler::review() {
  must_review_ = false;
  for (StageState& stage : stages_) {
    stage.is_needed = false;
    stage.inputs_left = static_cast<std::size_t>(
        std::ranges::count_if(stage.inputs, [this](StageId id) { return !is_complete(id); }));
  }
  stages_.back().is_needed = true;
  for (StageId id = last() + 1; id-- > 0;)
    if (stages_[id].is_needed && !is_complete(id))
      for (const StageId input : stages_[id].inputs) stages_[input].is_needed = true;
}

}  // namespace starling::flow
