/// The default training options of a model, which apply unless the user sets others.
#pragma once

#include <cstdint>

#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models {

/// A model may have a function `Recipe recipe() const`; other models are trained by Recipe{}.
struct Recipe {
  Optimizer optimizer = Adam{.lr = 0.005};
  /// Whether the learning rate falls to 0 over the job, as CosineRate defines.
  bool decays_rate = false;
  /// Whether to apply a weight decay of 1 / (samples of the training data): the penalty of
  /// scikit-learn's LogisticRegression with C = 1.
  bool decays_weights = false;
  /// Whether features of tables from files, and real targets, are scaled to mean 0 and standard
  /// deviation 1.
  bool standardises = false;
  /// The smallest number of steps of each worker, even if the data are small. It does not fall with
  /// the number of workers, because each update counts less the more workers there are.
  std::uint64_t steps = 750;
};

}  // namespace starling::models
