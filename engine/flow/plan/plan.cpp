#include "starling/engine/flow/plan/plan.hpp"

#include <map>

#include "starling/base/check.hpp"
#include "starling/engine/flow/values/hash.hpp"

namespace starling::flow {

Stage::~Stage() {
  // The functions hold the inputs, too.
  reads = nullptr;
  run = nullptr;
  source_hash = nullptr;
  std::vector<std::shared_ptr<const Stage>> held = std::move(inputs);
  while (!held.empty()) {
    const std::shared_ptr<const Stage> last = std::move(held.back());
    held.pop_back();
    if (!last || last.use_count() > 1) continue;
    auto& stage = const_cast<Stage&>(*last);
    stage.reads = nullptr;
    stage.run = nullptr;
    stage.source_hash = nullptr;
    held.insert(held.end(), stage.inputs.begin(), stage.inputs.end());
    stage.inputs.clear();
  }
}

namespace {

/// Adds stages in the order of a depth-first search. It keeps its own stack and does not recurse,
/// because iterations make long chains of stages.
class Planner {
 public:
  /// If `stops_at_kept`, the plan leaves out the stages from which only kept outputs were made.
  explicit Planner(bool stops_at_kept) : stops_at_kept_(stops_at_kept) {}

  Plan run(const StagePtr& last) {
    push(last);
    while (!stack_.empty()) advance();
    return std::move(plan_);
  }

 private:
  struct Visit {
    StagePtr stage;
    std::shared_ptr<const KeptOutputs::Parts> kept;
    /// The next of the stage's inputs to visit.
    std::size_t next = 0;
  };

  void push(StagePtr stage) {
    auto kept = stops_at_kept_ && stage->kept ? stage->kept->get() : nullptr;
    stack_.push_back({.stage = std::move(stage), .kept = std::move(kept)});
  }

  void advance() {
    Visit& visit = stack_.back();
    if (!visit.kept && visit.next < visit.stage->inputs.size()) {
      const StagePtr input = visit.stage->inputs[visit.next++];
      if (!ids_.contains(input.get())) push(input);
      return;
    }
    add(visit);
    stack_.pop_back();
  }

  void add(const Visit& visit) {
    PlannedStage planned{.stage = visit.stage, .inputs = {}, .kept = visit.kept};
    if (!visit.kept)
      for (const StagePtr& input : visit.stage->inputs)
        planned.inputs.push_back(ids_.at(input.get()));
    ids_.emplace(visit.stage.get(), static_cast<StageId>(plan_.stages.size()));
    plan_.stages.push_back(std::move(planned));
  }

  bool stops_at_kept_;
  Plan plan_;
  std::map<const Stage*, StageId> ids_;
  std::vector<Visit> stack_;
};

}  // namespace

Plan make_plan(const StagePtr& last) { return Planner{true}.run(last); }

std::uint64_t lineage_hash(const StagePtr& last) {
  const Plan plan = Planner{false}.run(last);
  std::vector<std::uint64_t> hashes;
  for (const PlannedStage& planned : plan.stages) {
    const Stage& stage = *planned.stage;
    std::uint64_t hash = hash_of(stage.description);
    if (stage.source_hash) hash = mix(hash ^ stage.source_hash());
    for (const StageId input : planned.inputs) hash = mix(hash ^ hashes[input]);
    hashes.push_back(stage.cut_lineage != 0 ? stage.cut_lineage : hash);
  }
  return hashes.back();
}

StagePtr without_lineage(const StagePtr& stage) {
  STARLING_CHECK(stage->kept && stage->kept->get());
  auto released = std::make_shared<Stage>();
  released->description = stage->description;
  released->form = stage->form;
  released->kept = stage->kept;
  released->cut_lineage = lineage_hash(stage);
  return released;
}

std::string print(const Plan& plan) {
  std::string text;
  for (std::size_t id = 0; id < plan.stages.size(); ++id) {
    const StageDescription& stage = plan.stages[id].stage->description;
    text += "stage " + std::to_string(id) + ": " + stage.operations + ", " +
            std::to_string(stage.parts) + (stage.parts == 1 ? " part" : " parts");
    if (stage.is_shuffle()) text += ", shuffles by " + stage.partitioner;
    if (!plan.stages[id].inputs.empty()) {
      text += ", reads";
      for (const StageId input : plan.stages[id].inputs) text += " " + std::to_string(input);
    }
    text += "\n";
  }
  return text;
}

}  // namespace starling::flow
