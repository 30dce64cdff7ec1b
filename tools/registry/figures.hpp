/// Metrics of a model's predictions, such as precision, recall and mean errors. Plain functions of
/// values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// The largest number of classes for which a confusion matrix is counted.
inline constexpr std::size_t confusion_max = 1000;

/// Figures of predicted classes.
struct ClassFigures {
  /// The number of samples at [label][prediction]; empty if there are more classes than
  /// `confusion_max`.
  std::vector<std::vector<std::uint64_t>> confusion;
  /// By class. A precision is absent if no sample was predicted as that class, a recall if no
  /// sample has that label.
  std::vector<std::optional<double>> precision;
  std::vector<std::optional<double>> recall;
};

/// Figures of predicted real targets, in their unit.
struct TargetFigures {
  double mae = 0;
  double rmse = 0;
  /// 1 - (sum of squared errors) / (sum of squared distances from the mean); absent if all
  /// targets are the same.
  std::optional<double> r2;
};

/// Requires: labels and predictions are classes below `classes`, and equally many.
[[nodiscard]] ClassFigures class_figures(std::size_t classes, std::span<const float> labels,
                                         std::span<const float> predictions);

/// Requires: equally many labels and predictions, at least one.
[[nodiscard]] TargetFigures target_figures(std::span<const double> labels,
                                           std::span<const double> predictions);

/// Returns the area under the receiver operating characteristic of two classes: the probability
/// that a sample of class 1 scores above one of class 0, ties counted as one half (Hanley, McNeil,
/// Radiology 1982). Absent if one of the classes has no sample or a score is not finite. Requires:
/// equally many labels and scores.
[[nodiscard]] std::optional<double> area_under_curve(std::span<const float> labels,
                                                     std::span<const float> scores);

/// Returns the probability of each class, samples x classes; nothing if the scores have no link.
[[nodiscard]] std::optional<std::vector<double>> probabilities(const Scores& scores);

}  // namespace starling::program
