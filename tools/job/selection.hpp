/// Chooses the best of a job's models, and whether the job is worth going on. Plain values.
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

/// The model that a job leaves.
enum class Keep {
  /// The one with the smallest test loss of all that were evaluated.
  best,
  /// The one at the end.
  last,
};

[[nodiscard]] Result<Keep> parse_keep(std::string_view text);
[[nodiscard]] std::string print(Keep keep);

/// A loss counts as better where it is smaller by more than this share of the best one.
inline constexpr double better_by = 1e-3;

/// Sees a job's evaluations, one after the other.
class Selection {
 public:
  using States = std::vector<core::RangeState>;

  /// An evaluated model, with the figures on test data.
  struct Model {
    double step = 0;
    double loss = 0;
    models::Metrics test;
    States states;
  };

  /// `patience` evaluations in a row without a better loss are enough; 0: there are never enough of
  /// them. The best model's states are held where `holds_best`.
  Selection(std::size_t patience, bool holds_best) : patience_(patience), holds_best_(holds_best) {}

  /// A loss that is absent or not finite is no better than any.
  void see(double step, const models::Metrics& test, const States& states);

  /// True once `patience` evaluations in a row had no better loss, and from then on.
  [[nodiscard]] bool is_enough() const { return patience_ > 0 && idle_ >= patience_; }
  /// Returns the best model; nothing where no evaluation had a finite loss.
  [[nodiscard]] const std::optional<Model>& best() const { return best_; }

 private:
  std::size_t patience_;
  bool holds_best_;
  /// Evaluations since the last one whose loss was better than the reference before it.
  std::size_t idle_ = 0;
  std::optional<double> reference_;
  std::optional<Model> best_;
};

}  // namespace starling::program
