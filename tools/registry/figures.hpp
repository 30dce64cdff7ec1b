/// Figures of a model's predictions beyond its loss. Plain functions of values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starling/tools/registry/any_model.hpp"

namespace starling::program {

/// Classes of which a matrix is counted.
inline constexpr std::size_t confusion_max = 1000;

/// Figures of predicted classes.
struct ClassFigures {
  /// [label][prediction] -> samples; as many rows and columns as there are classes, none of more
  /// than `confusion_max`.
  std::vector<std::vector<std::uint64_t>> confusion;
  /// By class; absent where nothing was predicted as that class, or nothing is of it.
  std::vector<std::optional<double>> precision;
  std::vector<std::optional<double>> recall;
};

/// Figures of predicted real targets, in their unit.
struct TargetFigures {
  double mae = 0;
  double rmse = 0;
  /// 1 - (sum of squared errors) / (sum of squared distances from the mean); absent where all
  /// targets are the same.
  std::optional<double> r2;
};

/// Requires: labels and predictions are classes below `classes`, as many of both.
[[nodiscard]] ClassFigures class_figures(std::size_t classes, std::span<const float> labels,
                                         std::span<const float> predictions);

/// Requires: as many of both, one at least.
[[nodiscard]] TargetFigures target_figures(std::span<const double> labels,
                                           std::span<const double> predictions);

/// The area under the receiver's operating characteristic of two classes: how likely a sample of
/// class 1 scores above one of class 0, ties as one half (Hanley, McNeil, Radiology 1982). Absent
/// where one of them has no sample, or a score is not finite. Requires: as many of both.
[[nodiscard]] std::optional<double> area_under_curve(std::span<const float> labels,
                                                     std::span<const float> scores);

/// The probability of each class, samples x classes; nothing where the scores have no link.
[[nodiscard]] std::optional<std::vector<double>> probabilities(const Scores& scores);

}  // namespace starling::program
