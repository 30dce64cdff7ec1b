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
  /// Returns the next action. `gathers` is Action::gathers. The action's plan has the whole lineage
  /// of `last`, so that lost outputs can be computed again. Returns an Error, which names the
  /// operations, if a stage's outputs cannot be sent to other nodes.
  [[nodiscard]] Result<Built> build(const flow::StagePtr& last, bool gathers);

  /// Returns the name of a kept stage's outputs. Requires: an action of build() has this stage.
  [[nodiscard]] StageName name_of(const flow::Stage& stage) const;
  /// Returns the names of the kept stages whose outputs the program has released since the last
  /// call.
  [[nodiscard]] std::vector<StageName> take_released();

 private:
  /// The outputs of a kept stage, and their name. `outputs` expires when the program releases them.
  struct Kept {
    std::weak_ptr<const flow::KeptOutputs> outputs;
    StageName name;
  };
  [[nodiscard]] const Kept* find(const flow::Stage& stage) const;

  ActionId next_ = 0;
  /// By the address of the stage. A new stage may have the address of a destroyed one whose name
  /// take_released() has not returned yet.
  std::multimap<const flow::Stage*, Kept> kept_;
};

}  // namespace starling::core
