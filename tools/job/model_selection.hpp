/// Chooses the best of the models that a job evaluates, and tells when the test loss no longer
/// falls (early stopping). Plain values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/models/model.hpp"

namespace starling::program {

/// Which of its models a job saves and reports.
enum class Keep {
  /// The evaluated model with the smallest test loss.
  best,
  /// The model at the end of the job.
  last,
};

[[nodiscard]] Result<Keep> parse_keep(std::string_view text);
[[nodiscard]] std::string print(Keep keep);

/// For patience, a loss counts as better if it is below the last loss that counted as better, by
/// more than this share of that last loss. For best(), any smaller loss is better.
inline constexpr double gain_min = 1e-3;

/// Takes a job's evaluations, one after the other.
class ModelSelection {
 public:
  using States = std::vector<core::RangeState>;

  /// An evaluated model with its metrics on the test data.
  struct Model {
    /// The mean number of steps that the workers had finished.
    double step = 0;
    double loss = 0;
    models::Metrics test;
    States states;
  };

  /// Patience is over after `patience` evaluations in a row without a better loss; 0: never. The
  /// best model's states are kept only if `keeps_best_states`.
  ModelSelection(std::size_t patience, bool keeps_best_states)
      : patience_(patience), keeps_best_states_(keeps_best_states) {}

  /// Takes the next evaluation. A loss that is absent or not finite counts as no better.
  void add_evaluation(double step, const models::Metrics& test, const States& states);

  /// Returns true once `patience` evaluations in a row had no better loss, and ever after.
  [[nodiscard]] bool is_patience_over() const {
    return patience_ > 0 && evaluations_without_gain_ >= patience_;
  }
  /// Returns the model with the smallest loss; nullopt if no evaluation had a finite loss.
  [[nodiscard]] const std::optional<Model>& best() const { return best_; }

 private:
  std::size_t patience_;
  bool keeps_best_states_;
  /// The number of evaluations since the last one whose loss counted as better.
  std::size_t evaluations_without_gain_ = 0;
  /// The loss of the last evaluation that counted as better.
  std::optional<double> reference_loss_;
  std::optional<Model> best_;
};

}  // namespace starling::program
