/// How a model is trained where nobody says otherwise.
#pragma once

#include <cstdint>

#include "starling/models/optimizer.hpp"

namespace starling::models {

/// A model has one as `Recipe recipe() const`; others are trained by a Recipe of default values.
struct Recipe {
  Optimizer optimizer = Adam{.lr = 0.005};
  /// The learning rate falls to 0 over the job, as CosineRate has it.
  bool decays_rate = false;
  /// Weight decay of 1 / (samples of the training data): the penalty of scikit-learn's
  /// LogisticRegression with C = 1.
  bool decays_weights = false;
  /// Features of tables from files, and real targets, are brought to mean 0 and deviation 1.
  bool standardises = false;
  /// The least steps of each worker, which small data need. An update counts the less the
  /// more workers there are.
  std::uint64_t steps = 750;
};

}  // namespace starling::models
