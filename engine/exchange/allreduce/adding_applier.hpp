/// Applies the sums of changes, which the workers make of their copies of a model.
#pragma once

#include "starling/engine/exchange/applier.hpp"

namespace starling::core {

/// Returns an Applier that adds changes of values to values of the elements of `applier`, without
/// the state of an optimizer: the mean of the changes if `applier` applies the mean of updates,
/// else their sum.
[[nodiscard]] ApplierPtr adding_applier(const Applier& applier);
/// Returns the change that makes `after` of `before`. Requires: they are of the same size and type.
[[nodiscard]] Slice change_between(const Buffer& before, const Buffer& after);

}  // namespace starling::core
