/// Compares the memory that training needs with the memory of this machine.
#pragma once

#include <cstddef>

#include "starling/actor/train/train_options.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// Refuses to train in one process if that needs more memory than this machine has. Counts the
/// parameters with the optimiser's state or, if each worker has a model of its own, all these
/// models; and for each computing thread the values and a gradient of the parameters that are not
/// row-sparse.
[[nodiscard]] Result<void> check_memory(const AnyModel& model, const actor::TrainOptions& options);
/// Refuses to train as one of `nodes` nodes if that needs more memory than is free on this machine
/// now. Counts the initial parameters; twice the model that a follower asks this node to evaluate;
/// this node's share of the replicas with the optimiser's state or, if each worker has a model of
/// its own, the models of this node's workers; and the values and gradients of its computing
/// threads.
[[nodiscard]] Result<void> check_memory_of_node(const AnyModel& model,
                                                const actor::TrainOptions& options,
                                                std::size_t nodes);

}  // namespace starling::program
