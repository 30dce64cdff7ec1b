/// How a model is trained where the user does not say otherwise.
#pragma once

#include <cstdint>

#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models {

/// A model may offer its own as `Recipe recipe() const`; other models are trained by a Recipe of
/// default values.
struct Recipe {
  Optimizer optimizer = Adam{.lr = 0.005};
  /// Whether the learning rate falls to 0 over the job, as CosineRate defines.
  bool decays_rate = false;
  /// Whether to apply a weight decay of 1 / (samples of the training data): the penalty of
  /// scikit-learn's LogisticRegression with C = 1.
  bool decays_weights = false;
  /// Whether features of tables from files, and real targets, are scaled to mean 0 and deviation 1.
  bool standardises = false;
  /// The least number of steps of each worker, for small data. With more workers, each update
  /// counts less.
  std::uint64_t steps = 750;
};

}  // namespace starling::models
