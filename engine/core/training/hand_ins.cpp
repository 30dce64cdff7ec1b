#include "starling/engine/core/training/hand_ins.hpp"

#include <algorithm>

namespace starling::core {

Result<void> check_hand_ins(const barrier::Barrier& barrier, bool dynamic_batches,
                            const std::vector<models::Parameter>& parameters) {
  if (!barrier::hands_in_early(barrier)) return {};
  const std::string name = "barrier " + barrier::print(barrier);
  if (dynamic_batches)
    return Error{name +
                 ": hands in a part of a batch, but dynamic batches already give slow workers "
                 "small batches; valid: a batch of one size, as --batch 64, or barrier bsp"};
  const auto buffer = std::ranges::find(parameters, false, &models::Parameter::trained);
  if (buffer != parameters.end())
    return Error{name + ": the model's '" + buffer->name +
                 "' follows from a whole batch, as in batch normalisation, so that no part of a "
                 "batch can be handed in; valid: bsp, or a model without it"};
  return {};
}

Result<void> check_hand_ins_without_samples(const barrier::Barrier& barrier) {
  if (!barrier::hands_in_early(barrier)) return {};
  return Error{"barrier " + barrier::print(barrier) +
               ": hands in some of a step's samples, and this job has no samples; valid: bsp, "
               "ssp:s=4, asp"};
}

Result<void> check_needs_no_gradients(const barrier::Barrier& barrier) {
  if (barrier::moves_with_descent(barrier))
    return Error{"barrier " + barrier::print(barrier) +
                 ": moves with the gradients of a loss, and this job's updates are not gradients; "
                 "valid: tuned:waiting=5%, tuned:staleness=3, pssp:s=4,beta=2"};
  return check_hand_ins_without_samples(barrier);
}

}  // namespace starling::core
