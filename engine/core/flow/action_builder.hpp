/// Makes an Action of the stage whose result a program needs. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/flow/action.hpp"
#include "starling/engine/flow/plan/plan.hpp"

namespace starling::core {

class ActionBuilder {
 public:
  struct Built {
    ActionPtr action;
    flow::Plan plan;
  };
  /// Returns the next action. Its plan has the whole lineage of `last`, so that lost outputs can be
  /// computed again. An Error says whose outputs cannot travel.
  [[nodiscard]] Result<Built> build(const flow::StagePtr& last, bool gathers);

  /// Returns the name of a kept stage's outputs. Requires: it was built.
  [[nodiscard]] StageName name_of(const flow::Stage& stage) const;
  /// Returns the kept stages that the program has destroyed since the last call.
  [[nodiscard]] std::vector<StageName> take_released();

 private:
  struct Kept {
    std::weak_ptr<const flow::KeptOutputs> outputs;
    StageName name;
  };
  [[nodiscard]] const Kept* find(const flow::Stage& stage) const;

  ActionId next_ = 0;
  /// A new stage may lie where one was that is destroyed, and has not been taken yet.
  std::multimap<const flow::Stage*, Kept> kept_;
};

}  // namespace starling::core
