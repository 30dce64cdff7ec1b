#include "starling/tools/registry/prediction_metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// The metrics, without the labels of `precision:LABEL` and `recall:LABEL`.
constexpr std::array<std::string_view, 6> metric_kinds{"auc", "mae",       "rmse",
                                                       "r2",  "precision", "recall"};

/// Computes the metrics of real targets in the unit of the data's source: first undoes the scaling
/// of the labels and of the predictions.
RegressionMetrics unscaled_regression_metrics(const models::Table& table,
                                              const std::vector<float>& predictions) {
  const auto unscaled = [&](float value) {
    return static_cast<double>(table.labelling.original(value));
  };
  std::vector<double> labels;
  std::vector<double> predicted;
  for (std::size_t row = 0; row < table.size(); ++row) {
    labels.push_back(unscaled(table.label(row)));
    predicted.push_back(unscaled(predictions[row]));
  }
  return regression_metrics(labels, predicted);
}

/// Returns one score for each sample of two classes. A higher score means that class 1 is more
/// likely. Returns nothing if the model has no scores of this kind.
std::optional<std::vector<float>> class_1_scores(const AnyModel& model, const Weights& w,
                                                 const AnyData& data) {
  const auto scores = model.scores(w, data);
  if (!scores) return std::nullopt;
  const bool has_score_per_class = scores->columns == 2 && scores->link == models::Link::softmax;
  if (scores->columns != 1 && !has_score_per_class) return std::nullopt;
  std::vector<float> class_1;
  for (std::size_t i = 0; i < scores->values.size(); i += scores->columns)
    class_1.push_back(has_score_per_class ? scores->values[i + 1] - scores->values[i]
                                          : scores->values[i]);
  return class_1;
}

/// Returns the mean of `value_of_class` over the classes that have samples. An absent value of such
/// a class counts as 0. Returns nothing if no class has samples.
std::optional<double> mean_over_classes(const ClassificationMetrics& metrics,
                                        const std::vector<std::optional<double>>& value_of_class) {
  double sum = 0;
  std::size_t counted = 0;
  for (std::size_t c = 0; c < value_of_class.size(); ++c) {
    if (!metrics.recall[c]) continue;  // a class without samples has no recall
    sum += value_of_class[c].value_or(0);
    ++counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

/// Returns the number of the class with the label `label`, as the data's source writes it. Returns
/// nothing if no class has this label.
std::optional<std::size_t> class_of(const models::Labelling& labelling, std::string_view label) {
  for (std::size_t c = 0; c < labelling.classes; ++c)
    if (labelling.text(static_cast<float>(c)) == label) return c;
  return std::nullopt;
}

/// Returns the first two rows with different labels, or fewer if the table lacks them. Two rows
/// show which metrics there are, as one row of each of many classes would.
std::vector<std::uint32_t> pick_samples(const models::Table& table) {
  std::vector<std::uint32_t> rows;
  std::vector<float> seen;
  constexpr std::size_t wanted = 2;
  for (std::size_t row = 0; row < table.size() && rows.size() < wanted; ++row) {
    if (std::ranges::find(seen, table.label(row)) != seen.end()) continue;
    seen.push_back(table.label(row));
    rows.push_back(static_cast<std::uint32_t>(row));
  }
  return rows;
}

Weights zeros(const AnyModel& model) {
  const std::size_t size = models::total_size(model.parameters());
  if (model.element_type() == ElementType::float32) return std::vector<float>(size);
  return std::vector<double>(size);
}

}  // namespace

PredictionMetrics prediction_metrics(const AnyModel& model, const Weights& w, const AnyData& data) {
  PredictionMetrics metrics;
  const models::Table* table = data.table();
  const auto predictions = model.predict(w, data);
  if (table == nullptr || !predictions || predictions->empty()) return metrics;
  const std::size_t classes = table->labelling.classes;
  if (classes == 0) {
    metrics.targets = unscaled_regression_metrics(*table, *predictions);
    return metrics;
  }
  const auto is_class = [&](float value) {
    return value >= 0 && value < static_cast<float>(classes) && value == std::floor(value);
  };
  // A user's own model may predict something other than classes.
  if (!std::ranges::all_of(*predictions, is_class)) return metrics;
  std::vector<float> labels;
  for (std::size_t row = 0; row < table->size(); ++row) labels.push_back(table->label(row));
  metrics.classes = classification_metrics(classes, labels, *predictions);
  if (classes == 2)
    if (const auto scores = class_1_scores(model, w, data))
      metrics.auc = area_under_curve(labels, *scores);
  return metrics;
}

std::optional<double> macro_precision(const ClassificationMetrics& metrics) {
  return mean_over_classes(metrics, metrics.precision);
}

std::optional<double> macro_recall(const ClassificationMetrics& metrics) {
  return mean_over_classes(metrics, metrics.recall);
}

std::optional<double> metric_of(const PredictionMetrics& metrics,
                                const models::Labelling& labelling, std::string_view name) {
  if (name == "auc") return metrics.auc;
  if (metrics.targets) {
    if (name == "mae") return metrics.targets->mae;
    if (name == "rmse") return metrics.targets->rmse;
    if (name == "r2") return metrics.targets->r2;
  }
  if (!metrics.classes) return std::nullopt;
  if (name == "precision") return macro_precision(*metrics.classes);
  if (name == "recall") return macro_recall(*metrics.classes);
  const auto colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto c = class_of(labelling, name.substr(colon + 1));
  if (!c) return std::nullopt;
  const std::string_view kind = name.substr(0, colon);
  if (kind == "precision") return metrics.classes->precision[*c];
  if (kind == "recall") return metrics.classes->recall[*c];
  return std::nullopt;
}

std::optional<double> metric_of(const AnyModel& model, const Weights& w, const AnyData& data,
                                std::string_view name) {
  const models::Table* table = data.table();
  if (table == nullptr) return std::nullopt;
  return metric_of(prediction_metrics(model, w, data), table->labelling, name);
}

bool is_prediction_metric(std::string_view name) {
  return std::ranges::find(metric_kinds, name.substr(0, name.find(':'))) != metric_kinds.end();
}

std::vector<std::string> metric_names(const AnyModel& model, const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return {};
  // Uses a few samples and parameters of 0, because that is fast. This assumes that the same
  // metrics have values for all data and for other parameters.
  const AnyData few_samples = data.select(pick_samples(*table));
  const PredictionMetrics metrics = prediction_metrics(model, zeros(model), few_samples);
  std::vector<std::string> names;
  for (const std::string_view name : metric_kinds)
    if (metric_of(metrics, table->labelling, name)) names.emplace_back(name);
  if (!metrics.classes) return names;
  for (const char* kind : {"precision:", "recall:"})
    for (std::size_t c = 0; c < table->labelling.classes; ++c)
      names.push_back(kind + table->labelling.text(static_cast<float>(c)));
  return names;
}

}  // namespace starling::program
