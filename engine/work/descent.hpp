/// Measures how the loss falls along the move that the model makes between two steps of a worker.
/// Live and simulated jobs use the same code. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <span>

#include "starling/barrier/descent.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/exchange/layout.hpp"

namespace starling::core {

/// Returns the descent along the move from the values of the former step to `values`, from which
/// the gradient `update` was computed. Counts the trained parameters in ranges that both steps have
/// read and updated as a whole; nullopt if there are none. Costs two products of vectors as long as
/// the model. Requires: elements are float or double.
[[nodiscard]] std::optional<barrier::Descent> descent_from(const FormerStep& former,
                                                           std::span<const Value> values,
                                                           std::span<const Update::Part> update,
                                                           const Layout& layout);

}  // namespace starling::core
