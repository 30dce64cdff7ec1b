/// Compares the memory that training needs with the memory of this machine.
#pragma once

#include <cstddef>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// Refuses to train in one process what needs more memory than this machine has: the parameters and
/// the optimiser's state, and, but for row-sparse parameters, values and a gradient for each thread
/// that computes.
[[nodiscard]] Result<void> check_memory(const AnyModel& model, const actor::TrainOptions& options);
/// The same for one of `nodes` nodes that train together, and the memory that is free now: the
/// parameters as they begin, its share of their copies with the optimiser's state, and its workers.
[[nodiscard]] Result<void> check_memory_of_node(const AnyModel& model,
                                                const actor::TrainOptions& options,
                                                std::size_t nodes);

}  // namespace starling::program
