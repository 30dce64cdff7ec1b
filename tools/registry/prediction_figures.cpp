#include "starling/tools/registry/prediction_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

TargetFigures figures_of_targets(const models::Table& table,
                                 const std::vector<float>& predictions) {
  const auto written = [&](float value) {
    return static_cast<double>(table.labelling.written(value));
  };
  std::vector<double> labels;
  std::vector<double> predicted;
  for (std::size_t row = 0; row < table.size(); ++row) {
    labels.push_back(written(table.label(row)));
    predicted.push_back(written(predictions[row]));
  }
  return target_figures(labels, predicted);
}

/// Returns for each sample a score that is the higher the more likely the second of two classes is;
/// nothing if the model has no such score.
std::optional<std::vector<float>> class_1_scores(const AnyModel& model, const Weights& w,
                                                 const AnyData& data) {
  const auto scores = model.scores(w, data);
  if (!scores) return std::nullopt;
  const bool has_both = scores->columns == 2 && scores->link == models::Link::softmax;
  if (scores->columns != 1 && !has_both) return std::nullopt;
  std::vector<float> ones;
  for (std::size_t at = 0; at < scores->values.size(); at += scores->columns)
    ones.push_back(has_both ? scores->values[at + 1] - scores->values[at] : scores->values[at]);
  return ones;
}

std::optional<double> mean_of(const ClassFigures& figures,
                              const std::vector<std::optional<double>>& of_classes) {
  double sum = 0;
  std::size_t counted = 0;
  for (std::size_t c = 0; c < of_classes.size(); ++c) {
    if (!figures.recall[c]) continue;
    sum += of_classes[c].value_or(0);
    ++counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

/// Returns the class whose label is written like this; nothing if there is none.
std::optional<std::size_t> class_of(const models::Labelling& labelling, std::string_view label) {
  for (std::size_t c = 0; c < labelling.classes; ++c)
    if (labelling.text(static_cast<float>(c)) == label) return c;
  return std::nullopt;
}

/// Returns one sample of each class, or two samples with different targets.
std::vector<std::uint32_t> pick_samples(const models::Table& table) {
  std::vector<std::uint32_t> rows;
  std::vector<float> seen;
  const std::size_t wanted = std::max<std::size_t>(2, table.classes());
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

PredictionFigures prediction_figures(const AnyModel& model, const Weights& w, const AnyData& data) {
  PredictionFigures figures;
  const models::Table* table = data.table();
  const auto predictions = model.predict(w, data);
  if (table == nullptr || !predictions || predictions->empty()) return figures;
  const std::size_t classes = table->labelling.classes;
  if (classes == 0) {
    figures.targets = figures_of_targets(*table, *predictions);
    return figures;
  }
  const auto is_class = [&](float value) {
    return value >= 0 && value < static_cast<float>(classes) && value == std::floor(value);
  };
  // A user's own model may predict something else.
  if (!std::ranges::all_of(*predictions, is_class)) return figures;
  std::vector<float> labels;
  for (std::size_t row = 0; row < table->size(); ++row) labels.push_back(table->label(row));
  figures.classes = class_figures(classes, labels, *predictions);
  if (classes == 2)
    if (const auto ranks = class_1_scores(model, w, data))
      figures.auc = area_under_curve(labels, *ranks);
  return figures;
}

std::optional<double> macro_precision(const ClassFigures& figures) {
  return mean_of(figures, figures.precision);
}

std::optional<double> macro_recall(const ClassFigures& figures) {
  return mean_of(figures, figures.recall);
}

std::optional<double> figure_of(const PredictionFigures& figures,
                                const models::Labelling& labelling, std::string_view name) {
  if (name == "auc") return figures.auc;
  if (figures.targets) {
    if (name == "mae") return figures.targets->mae;
    if (name == "rmse") return figures.targets->rmse;
    if (name == "r2") return figures.targets->r2;
  }
  if (!figures.classes) return std::nullopt;
  if (name == "precision") return macro_precision(*figures.classes);
  if (name == "recall") return macro_recall(*figures.classes);
  const auto colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto c = class_of(labelling, name.substr(colon + 1));
  if (!c) return std::nullopt;
  const std::string_view kind = name.substr(0, colon);
  if (kind == "precision") return figures.classes->precision[*c];
  if (kind == "recall") return figures.classes->recall[*c];
  return std::nullopt;
}

std::vector<std::string> figure_names(const AnyModel& model, const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr) return {};
  const AnyData some = data.select(pick_samples(*table));
  const PredictionFigures figures = prediction_figures(model, zeros(model), some);
  std::vector<std::string> names;
  for (const char* name : {"auc", "mae", "rmse", "r2", "precision", "recall"})
    if (figure_of(figures, table->labelling, name)) names.emplace_back(name);
  if (!figures.classes) return names;
  for (const char* kind : {"precision:", "recall:"})
    for (std::size_t c = 0; c < table->labelling.classes; ++c)
      names.push_back(kind + table->labelling.text(static_cast<float>(c)));
  return names;
}

}  // namespace starling::program
