/// Computes the metrics of evaluation_metrics.hpp that a model and its data allow, and finds a
/// metric by name. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/evaluation_metrics.hpp"

namespace starling::program {

/// The metrics of the predictions for one data set. At most one of `classes` and `targets` is set.
struct PredictionMetrics {
  std::optional<ClassificationMetrics> classes;
  std::optional<RegressionMetrics> targets;
  /// The area under the receiver operating characteristic; absent unless there are two classes.
  std::optional<double> auc;
};

/// Predicts all of `data` with the parameters `w` and computes the metrics. All are absent if the
/// data is not a table or the model cannot predict. Requires: the model accepts `data`, which has
/// labels.
[[nodiscard]] PredictionMetrics prediction_metrics(const AnyModel& model, const Weights& w,
                                                   const AnyData& data);

/// Return the mean of the classes' precisions or recalls. A class that was never predicted counts
/// with a precision of 0. A class without samples does not count. Return nothing if no class
/// counts.
[[nodiscard]] std::optional<double> macro_precision(const ClassificationMetrics& metrics);
[[nodiscard]] std::optional<double> macro_recall(const ClassificationMetrics& metrics);

/// Returns the metric `name`: `auc`, `r2`, `mae`, `rmse`, `precision` and `recall` (means over the
/// classes), `precision:LABEL` or `recall:LABEL`. Returns nothing if the metric has no value.
[[nodiscard]] std::optional<double> metric_of(const PredictionMetrics& metrics,
                                              const models::Labelling& labelling,
                                              std::string_view name);

/// Predicts all of `data` with the parameters `w` and returns the metric `name`; nothing if it has
/// no value. Requires the same as prediction_metrics().
[[nodiscard]] std::optional<double> metric_of(const AnyModel& model, const Weights& w,
                                              const AnyData& data, std::string_view name);

/// True if metric_of() knows the metric `name`. For some models and predictions, the metric still
/// has no value.
[[nodiscard]] bool is_prediction_metric(std::string_view name);

/// Returns the names for which metric_of() can have a value with this model and data, among them
/// `precision:LABEL` and `recall:LABEL` for each class. Requires the same as prediction_metrics().
[[nodiscard]] std::vector<std::string> metric_names(const AnyModel& model, const AnyData& data);

}  // namespace starling::program
