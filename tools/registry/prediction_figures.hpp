/// Computes those figures of figures.hpp that suit a model and its data, and finds them by name.
/// Plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/figures.hpp"

namespace starling::program {

/// Holds `classes` or `targets`, or neither.
struct PredictionFigures {
  std::optional<ClassFigures> classes;
  std::optional<TargetFigures> targets;
  std::optional<double> auc;
};

/// Computes the figures. Returns none if the data is not a table or the model does not predict.
/// Requires: the model accepts `data`, which has labels.
[[nodiscard]] PredictionFigures prediction_figures(const AnyModel& model, const Weights& w,
                                                   const AnyData& data);

/// Return the mean over the classes. A class that was never predicted counts with a precision of 0;
/// a class without samples does not count.
[[nodiscard]] std::optional<double> macro_precision(const ClassFigures& figures);
[[nodiscard]] std::optional<double> macro_recall(const ClassFigures& figures);

/// Returns the figure of that name: `auc`, `r2`, `mae`, `rmse`, `precision` and `recall` (means
/// over the classes), `precision:LABEL` and `recall:LABEL`. Absent if it has no value.
[[nodiscard]] std::optional<double> figure_of(const PredictionFigures& figures,
                                              const models::Labelling& labelling,
                                              std::string_view name);

/// Returns the names for which figure_of() can have a value, with `precision:LABEL` and
/// `recall:LABEL` for each class. Requires the same as prediction_figures().
[[nodiscard]] std::vector<std::string> figure_names(const AnyModel& model, const AnyData& data);

}  // namespace starling::program
