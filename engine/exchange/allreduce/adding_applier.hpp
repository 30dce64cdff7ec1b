/// Adds the changes of the workers' copies to a model, for exchanges that send changes of models.
#pragma once

#include "starling/engine/exchange/applier.hpp"

namespace starling::core {

/// Returns an Applier that adds changes to values. It has the element type of `applier`, and no
/// state of an optimizer. apply_round() adds each change of the round in full, never their mean:
/// averages_rounds() returns what that of `applier` returns; if true, the caller must pass the
/// mean as the only part of the round (TypedRoundSum does).
[[nodiscard]] ApplierPtr adding_applier(const Applier& applier);
/// Returns `after` - `before`, element by element. Requires: they are of the same size and type.
[[nodiscard]] Slice change_between(const Buffer& before, const Buffer& after);

}  // namespace starling::core
