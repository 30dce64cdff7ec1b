#include "starling/actor/flow_job/flow_counter.hpp"

#include <algorithm>
#include <chrono>

namespace starling::actor {
namespace {

/// Returns, for each stage of the action, whether the action computes it, even if no output is
/// lost. The action does not compute the stages whose outputs an earlier action has kept, and the
/// stages that are read only by stages that it does not compute.
std::vector<bool> stages_to_run(const core::Action& action) {
  std::vector<bool> runs(action.stages.size(), false);
  if (runs.empty()) return runs;
  runs[action.last()] = true;
  // Each stage comes after the stages that it reads.
  for (std::size_t id = runs.size(); id-- > 0;) {
    if (action.is_kept[id] && action.names[id].action < action.id) runs[id] = false;
    if (runs[id])
      for (const flow::StageId input : action.stages[id].inputs) runs[input] = true;
  }
  return runs;
}

}  // namespace

void FlowCounter::begin(const core::Action& action, const flow::Plan& plan) {
  const std::lock_guard lock{mutex_};
  if (action.id < actions_) return;
  for (const CurrentStage& stage : stages_) totals_[stage.total].seconds += seconds_of(stage);
  stages_.clear();
  actions_ = action.id + 1;
  const std::vector<bool> runs = stages_to_run(action);
  std::uint32_t number = 0;
  for (std::size_t id = 0; id < runs.size(); ++id) {
    const flow::StageDescription& description = plan.stages[id].stage->description;
    CurrentStage stage{.number = runs[id] ? ++number : 0,
                       .description = description,
                       .total = total_of(description)};
    if (runs[id]) ++totals_[stage.total].runs;
    stages_.push_back(std::move(stage));
  }
}

void FlowCounter::begin_task(const core::PartName& task, core::Time now) {
  const std::lock_guard lock{mutex_};
  CurrentStage* stage = find(task);
  if (stage != nullptr && !stage->begin) stage->begin = stage->end = now;
}

void FlowCounter::end_task(const core::PartName& task, const flow::TaskCounts& counts,
                           core::Time now) {
  const std::lock_guard lock{mutex_};
  CurrentStage* stage = find(task);
  if (stage == nullptr) return;
  stage->parts_done.insert(task.part);
  stage->counts += counts;
  stage->end = now;
  totals_[stage->total].counts += counts;
}

void FlowCounter::on_outputs_lost() {
  const std::lock_guard lock{mutex_};
  for (CurrentStage& stage : stages_) stage.parts_done.clear();
}

void FlowCounter::on_part_done(const core::PartName& task) {
  const std::lock_guard lock{mutex_};
  CurrentStage* stage = find(task);
  if (stage == nullptr) return;
  const bool is_first = stage->known_done.insert(task.part).second;
  if (!is_first || stage->number == 0) ++parts_again_;
}

void FlowCounter::on_takeover() {
  const std::lock_guard lock{mutex_};
  has_taken_over_ = true;
}

core::FlowReport FlowCounter::report() const {
  const std::lock_guard lock{mutex_};
  core::FlowReport report;
  report.actions = actions_;
  report.totals = totals_;
  report.parts_again = parts_again_;
  report.has_taken_over = has_taken_over_;
  for (const CurrentStage& stage : stages_) {
    report.stages = std::max(report.stages, stage.number);
    if (!stage.begin) continue;
    report.totals[stage.total].seconds += seconds_of(stage);
    constexpr std::size_t word_bits = 64;
    core::StageStatus status{.number = stage.number,
                             .description = stage.description,
                             .counts = stage.counts,
                             .seconds = seconds_of(stage)};
    status.parts_done.resize((stage.description.parts + word_bits - 1) / word_bits);
    for (const flow::Part part : stage.parts_done)
      status.parts_done[part / word_bits] |= std::uint64_t{1} << part % word_bits;
    report.current.push_back(std::move(status));
  }
  return report;
}

FlowCounter::CurrentStage* FlowCounter::find(const core::PartName& task) {
  if (task.stage.action + 1 != actions_ || task.stage.stage >= stages_.size()) return nullptr;
  CurrentStage& stage = stages_[task.stage.stage];
  return task.part < stage.description.parts ? &stage : nullptr;
}

std::size_t FlowCounter::total_of(const flow::StageDescription& description) {
  auto known = std::ranges::find(totals_, description, &core::StageTotals::description);
  if (known == totals_.end() && totals_.size() + 1 < totals_max)
    known = totals_.insert(known, {.description = description, .counts = {}});
  if (known != totals_.end()) return static_cast<std::size_t>(known - totals_.begin());
  if (totals_.size() < totals_max)
    totals_.push_back({.description = {.operations = "other stages"}, .counts = {}});
  return totals_.size() - 1;
}

double FlowCounter::seconds_of(const CurrentStage& stage) {
  return stage.begin ? std::chrono::duration<double>{stage.end - *stage.begin}.count() : 0;
}

}  // namespace starling::actor
