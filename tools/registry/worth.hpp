/// Figures of a model's predictions, as far as that fits model and data: the figures of
/// figures.hpp, by name too. Plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/figures.hpp"

namespace starling::program {

struct Worth {
  std::optional<ClassFigures> classes;
  std::optional<TargetFigures> targets;
  std::optional<double> auc;
};

/// Computes the figures; none where the data are no table, or the model does not predict. Requires:
/// the model accepts `data`, which have labels.
[[nodiscard]] Worth worth_of(const AnyModel& model, const Weights& w, const AnyData& data);

/// Return the mean of a figure over the classes. A class that was never predicted has a precision
/// of 0; a class without samples does not count.
[[nodiscard]] std::optional<double> macro_precision(const ClassFigures& figures);
[[nodiscard]] std::optional<double> macro_recall(const ClassFigures& figures);

/// The figure of that name: `auc`, `r2`, `mae`, `rmse`, `precision` and `recall` (means over the
/// classes), `precision:LABEL` and `recall:LABEL`. Absent where it has no value.
[[nodiscard]] std::optional<double> figure_of(const Worth& worth,
                                              const models::Labelling& labelling,
                                              std::string_view name);

/// The names that figure_of() can have values for, `precision:LABEL` for all classes. Requires as
/// worth_of().
[[nodiscard]] std::vector<std::string> figure_names(const AnyModel& model, const AnyData& data);

}  // namespace starling::program
