#include "starling/engine/core/flow/action_builder.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "starling/base/check.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::core {

Result<ActionBuilder::Built> ActionBuilder::build(const flow::StagePtr& last, bool gathers) {
  flow::Plan plan = flow::make_plan(last);
  for (const flow::PlannedStage& planned : plan.stages)
    if (!planned.stage->form.can_travel())
      return Error{planned.stage->description.operations +
                   ": its results cannot be sent to other nodes; valid: results that are records"};
  auto action = std::make_shared<Action>();
  action->id = next_;
  action->gathers = gathers;
  std::map<const flow::Stage*, flow::StageId> ids;
  for (const flow::PlannedStage& planned : plan.stages) {
    const flow::Stage& stage = *planned.stage;
    const auto id = static_cast<flow::StageId>(ids.size());
    ids[&stage] = id;
    const Kept* kept = stage.kept ? find(stage) : nullptr;
    StageName name{next_, id};
    if (kept != nullptr)
      name = kept->name;
    else if (stage.kept)
      kept_.emplace(&stage, Kept{stage.kept, name});
    action->stages.push_back({stage.description.parts, planned.inputs});
    action->names.push_back(name);
    action->is_kept.push_back(stage.kept != nullptr);
  }
  ++next_;
  action->fingerprint = flow::hash_bytes(flow::print(plan));
  action->reads = [stages = plan.stages, ids](flow::StageId id, flow::Part part) {
    std::vector<Action::Read> reads;
    const flow::Stage& stage = *stages[id].stage;
    if (stage.inputs.empty()) return reads;
    for (const flow::StageRead& read : stage.reads(part))
      reads.push_back({ids.at(read.stage.get()), read.part, read.piece});
    return reads;
  };
  return Built{std::move(action), std::move(plan)};
}

StageName ActionBuilder::name_of(const flow::Stage& stage) const {
  const Kept* kept = find(stage);
  STARLING_CHECK(kept != nullptr);
  return kept->name;
}

const ActionBuilder::Kept* ActionBuilder::find(const flow::Stage& stage) const {
  const auto [first, end] = kept_.equal_range(&stage);
  const auto kept =
      std::find_if(first, end, [](const auto& one) { return !one.second.outputs.expired(); });
  return kept == end ? nullptr : &kept->second;
}

std::vector<StageName> ActionBuilder::take_released() {
  std::vector<StageName> released;
  std::erase_if(kept_, [&](const auto& kept) {
    if (!kept.second.outputs.expired()) return false;
    released.push_back(kept.second.name);
    return true;
  });
  return released;
}

}  // namespace starling::core
