/// Plans. A plan lists the stages that an action needs, each after those whose outputs it reads.
/// Plain values; thread-safe to read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "starling/engine/flow/plan/kept_outputs.hpp"
#include "starling/engine/flow/plan/stage.hpp"

namespace starling::flow {

/// The position of a stage in its plan.
using StageId = std::uint32_t;

struct PlannedStage {
  StagePtr stage;
  /// The stages that must be done before: all have smaller ids.
  std::vector<StageId> inputs;
  /// The outputs that an earlier job has left; null if the stage must run.
  std::shared_ptr<const KeptOutputs::Parts> kept;
};

struct Plan {
  std::vector<PlannedStage> stages;
};

/// Returns the plan that ends with `last`. Stages that only cached, complete stages read are left
/// out. Two calls return equal plans, because the order depends on the stages only.
[[nodiscard]] Plan make_plan(const StagePtr& last);

/// Returns a hash of what the records of a stage are made of: its description and those of all
/// stages before it, even of stages before kept outputs, and the data of their sources. Functions
/// do not count, because they cannot be compared.
[[nodiscard]] std::uint64_t lineage_hash(const StagePtr& last);

/// Returns the same kept outputs as a stage that does not know how they were made, so that whatever
/// they were made of can be released. Requires: the outputs of `stage` are complete.
[[nodiscard]] StagePtr without_lineage(const StagePtr& stage);

/// Returns a line for each stage: its id, its operations, its parts and its inputs.
[[nodiscard]] std::string print(const Plan& plan);

}  // namespace starling::flow
