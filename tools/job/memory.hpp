/// Compares the memory that training needs with the memory of this machine.
#pragma once

#include <cstddef>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// Refuses to train in one process if that needs more memory than this machine has. Counts the
/// parameters, the optimiser's state, and for each computing thread the values and a gradient of
/// the parameters that are not row-sparse.
[[nodiscard]] Result<void> check_memory(const AnyModel& model, const actor::TrainOptions& options);
/// The same for one of `nodes` nodes that train together, compared with the memory that is free
/// now. Counts the initial parameters, this node's share of their replicas with the optimiser's
/// state, and its workers.
[[nodiscard]] Result<void> check_memory_of_node(const AnyModel& model,
                                                const actor::TrainOptions& options,
                                                std::size_t nodes);

}  // namespace starling::program
