/// Which jobs can have workers that hand in what they have computed so far (barrier::Absp).
#pragma once

#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/models/parameter.hpp"

namespace starling::core {

/// Refuses a barrier under which workers hand in early, if batches are dynamic, or if the model has
/// parameters that are not trained, as batch normalisation has: their values follow from the whole
/// batch, so a part of it does not contribute a part of the update.
[[nodiscard]] Result<void> check_hand_ins(const barrier::Barrier& barrier, bool dynamic_batches,
                                          const std::vector<models::Parameter>& parameters);
/// Refuses a barrier under which workers hand in early, for a job without samples.
[[nodiscard]] Result<void> check_hand_ins_without_samples(const barrier::Barrier& barrier);
/// For a job whose updates are not gradients: refuses a barrier that needs gradients
/// (barrier::moves_with_descent()), and a barrier under which workers hand in early, because such a
/// job has no samples.
[[nodiscard]] Result<void> check_needs_no_gradients(const barrier::Barrier& barrier);

}  // namespace starling::core
