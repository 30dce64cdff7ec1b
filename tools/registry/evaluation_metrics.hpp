/// Computes metrics from the labels and predictions of samples: precision, recall, mean errors and
/// others. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// The largest number of classes for which a confusion matrix is counted.
inline constexpr std::size_t confusion_max = 1000;

/// Metrics of predicted classes.
struct ClassificationMetrics {
  /// The number of samples at [label][prediction]; empty if there are more classes than
  /// `confusion_max`.
  std::vector<std::vector<std::uint64_t>> confusion;
  /// One element for each class. A precision is absent if no prediction is that class; a recall is
  /// absent if no label is that class.
  std::vector<std::optional<double>> precision;
  std::vector<std::optional<double>> recall;
};

/// Metrics of predicted real targets. The errors are in the unit of the targets.
struct RegressionMetrics {
  /// The mean absolute error.
  double mae = 0;
  /// The root of the mean squared error.
  double rmse = 0;
  /// 1 - (sum of squared errors) / (sum of squared distances from the mean); absent if all
  /// targets are the same.
  std::optional<double> r2;
};

/// Requires: as many predictions as labels; all of them are classes, from 0 to `classes` - 1.
[[nodiscard]] ClassificationMetrics classification_metrics(std::size_t classes,
                                                           std::span<const float> labels,
                                                           std::span<const float> predictions);

/// Requires: as many predictions as labels, at least one.
[[nodiscard]] RegressionMetrics regression_metrics(std::span<const double> labels,
                                                   std::span<const double> predictions);

/// Returns the area under the receiver operating characteristic of two classes: the probability
/// that a random sample of class 1 has a higher score than one of class 0, where a tie counts one
/// half (Hanley, McNeil, Radiology 1982). Returns nothing if one of the classes has no sample or a
/// score is not finite. Requires: as many scores as labels; the labels are 0 or 1.
[[nodiscard]] std::optional<double> area_under_curve(std::span<const float> labels,
                                                     std::span<const float> scores);

/// Returns the probability of each class for each sample, samples x classes in row-major order;
/// nothing if the scores have no link function.
[[nodiscard]] std::optional<std::vector<double>> probabilities(const Scores& scores);

}  // namespace starling::program
