/// A recipe: the default training options of a model, which apply unless the user sets others.
#pragma once

#include <cstdint>

#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models {

/// A model may have a function `Recipe recipe() const`; the defaults of all other models are
/// Recipe{}.
struct Recipe {
  Optimizer optimizer = Adam{.lr = 0.005};
  /// True if the learning rate falls to 0 over the job, as CosineRate defines.
  bool decays_rate = false;
  /// True to apply a weight decay of 1 / (number of training samples): the penalty of
  /// scikit-learn's LogisticRegression with C = 1.
  bool decays_weights = false;
  /// True to scale the features of tables from files, and real targets, to mean 0 and standard
  /// deviation 1.
  bool standardises = false;
  /// The smallest number of steps of each worker in a job whose length the user does not set, even
  /// if the data are few. It does not depend on the number of workers, because the more workers
  /// there are, the less each update counts.
  std::uint64_t steps = 750;
};

}  // namespace starling::models
