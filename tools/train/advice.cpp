#include "starling/tools/train/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "starling/base/text.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {
namespace {

/// The loss counts as still falling if it fell by more than this share of the baseline's loss over
/// the last fifth of a job.
constexpr double fall_min = 0.01;

Baseline classes_baseline(const models::Table& train, const models::Table& test) {
  std::vector<double> counts(train.classes());
  for (std::size_t row = 0; row < train.size(); ++row)
    ++counts[static_cast<std::size_t>(train.label(row))];
  const auto commonest = std::ranges::max_element(counts) - counts.begin();
  double entropy = 0;
  for (const double count : counts) {
    const double share = count / static_cast<double>(train.size());
    if (share > 0) entropy -= share * std::log(share);
  }
  double right = 0;
  for (std::size_t row = 0; row < test.size(); ++row)
    right += test.label(row) == static_cast<float>(commonest) ? 1 : 0;
  return {{"accuracy", right / static_cast<double>(test.size())}, entropy};
}

Baseline targets_baseline(const models::Table& train, const models::Table& test) {
  // Returns the target as it was before it was scaled.
  const auto unscaled = [](const models::Table& table, std::size_t row) {
    return static_cast<double>(table.labelling.original(table.label(row)));
  };
  double mean = 0;
  for (std::size_t row = 0; row < train.size(); ++row)
    mean += unscaled(train, row) / static_cast<double>(train.size());
  const auto mean_squared_error = [&](const models::Table& table) {
    double sum = 0;
    for (std::size_t row = 0; row < table.size(); ++row)
      sum += std::pow(unscaled(table, row) - mean, 2);
    return sum / static_cast<double>(table.size());
  };
  return {{"mse", mean_squared_error(test)}, mean_squared_error(train) / 2};
}

/// Returns the loss at a step, interpolated between the evaluations before and after it. Requires:
/// `losses` has a point at `step` or later.
double loss_at_step(const LossCurve& losses, double step) {
  const auto after =
      std::ranges::find_if(losses, [step](const auto& point) { return point.first >= step; });
  if (after == losses.begin()) return after->second;
  const auto& [to, end] = *after;
  const auto& [from, begin] = *std::prev(after);
  return std::lerp(begin, end, (step - from) / (to - from));
}

/// Returns suggestions for a model that is no better than the baseline.
std::string suggest_changes(const RecordedRun& run) {
  const auto& table = run.notes.shape;
  const models::Recipe recipe = run.description->recipe();
  const bool is_scaled = run.job.data.scale.value_or(models::Scale::none) != models::Scale::none;
  std::string text;
  if (!is_scaled && recipe.standardises) text += "--scale standard, ";
  text += "another --optimizer or rate (now " + models::print(run.resolved.options.optimizer) + ")";
  const bool is_linear = recipe.decays_rate;  // only linear built-in models decay it
  if (table && is_linear)
    text += fmt::format(", a model of more layers like --model mlp:{}-64-{}", table->features(),
                        std::max<std::size_t>(1, table->classes()));
  return text;
}

/// Returns true if the table has two to ten different labels, and on average at least ten rows for
/// each of them.
bool has_few_labels(const models::Table& table) {
  std::set<float> labels;
  for (std::size_t row = 0; row < table.size() && labels.size() <= 10; ++row)
    labels.insert(table.labelling.original(table.label(row)));
  return labels.size() > 1 && labels.size() <= 10 && table.size() >= 10 * labels.size();
}

}  // namespace

std::optional<Baseline> baseline_of(const AnyData& train, const AnyData& test) {
  const models::Table* train_table = train.table();
  const models::Table* test_table = test.table();
  if (train_table == nullptr || test_table == nullptr || train_table->size() == 0 ||
      test_table->size() == 0)
    return std::nullopt;
  return train_table->classes() > 0 ? classes_baseline(*train_table, *test_table)
                                    : targets_baseline(*train_table, *test_table);
}

std::string label_reading_hint(const std::string& source, const AnyData& data) {
  const auto other = other_task(source, data);
  const models::Table* table = data.table();
  if (!other || table == nullptr || !table->has_labels) return {};
  return fmt::format("the labels are whole numbers, read as {}; to read them as {}: {}",
                     table->classes() > 0 ? "classes" : "real targets",
                     table->classes() > 0 ? "real targets" : "classes", other->source);
}

std::string odd_labels_hint(const std::string& source, const AnyData& data) {
  const models::Table* table = data.table();
  if (table == nullptr || table->labelling.is_signed) return {};
  // Ratings seldom begin at 0, and labels seldom name more than ten classes.
  const bool is_odd = table->classes() > 10 ||
                      (table->classes() > 4 && table->labelling.first_label != 0) ||
                      (table->classes() == 0 && has_few_labels(*table));
  return is_odd ? label_reading_hint(source, data) : std::string{};
}

std::vector<std::string> find_advice(const RecordedRun& run, const models::Metrics& test,
                                     const LossCurve& losses) {
  const auto& [baseline, labels_hint] = run.data_advice;
  std::vector<std::string> advice;
  if (!labels_hint.empty()) advice.push_back(labels_hint);
  if (!baseline) return advice;
  const auto& [name, baseline_value] = baseline->figure;
  const auto figure = std::ranges::find(test, name, &models::Metric::name);
  const bool is_classification = name == "accuracy";
  const bool is_perfect = figure != test.end() && figure->value == (is_classification ? 1 : 0);
  if (figure != test.end() && !is_perfect &&
      (is_classification ? figure->value <= baseline_value : figure->value >= baseline_value))
    advice.push_back(
        fmt::format("the model is no better than always predicting {} of the training data ({}); "
                    "try {}",
                    is_classification ? "the commonest class" : "the mean",
                    is_classification ? fmt::format("accuracy {:.1f} %", 100 * baseline_value)
                                      : fmt::format("mse {:.4g}", baseline_value),
                    suggest_changes(run)));
  if (losses.size() < 3) return advice;
  const auto& [last_step, last_loss] = losses.back();
  const double earlier_loss = loss_at_step(losses, 0.8 * last_step);
  if (earlier_loss - last_loss > fall_min * baseline->loss)
    advice.push_back(fmt::format(
        "the test loss was still falling, from {:.3g} to {:.3g} over the last fifth; try more, "
        "like {}",
        earlier_loss, last_loss,
        run.job.epochs ? fmt::format("--epochs {:.0f}",
                                     std::ceil(2 * last_step /
                                               static_cast<double>(run.resolved.steps_per_epoch)))
                       : fmt::format("--steps {:.0f}", 2 * last_step)));
  return advice;
}

}  // namespace starling::program
