#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/models/tabular/affine.hpp"
#include "starling/tools/files/file_output.hpp"
#include "starling/tools/files/file_use.hpp"
#include "starling/tools/program/interrupt.hpp"
#include "starling/tools/registry/prediction_metrics.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/train/init_model.hpp"
#include "starling/tools/train/model_file.hpp"

namespace starling::program {
namespace {

/// A saved model on its device, and the data on which it is evaluated or predicts.
struct LoadedModel {
  std::shared_ptr<const AnyModel> model;
  std::string device;
  Weights weights;
  AnyData data;
  /// The labels as the data source has them, before scaling; empty if a label is unknown.
  std::vector<double> labels;
  /// The description of the data in messages.
  std::string source;
  /// How the training data writes labels.
  models::Labelling labelling;
};

Error data_unavailable_error(const StoredModel& stored, const Error& error) {
  return Error{stored.path + ": its data cannot be loaded (" + error.message +
               "); valid: --data SOURCE"};
}

/// Refuses training data with other rows than those on which the model was trained, because its
/// test part may then have rows that the model knows.
Result<void> check_training_rows(const StoredModel& stored, const AnyData& train) {
  const ModelNotes& notes = stored.notes;
  if (!notes.train_hash) return {};
  const auto scaled = notes.shape ? scale_like(*notes.shape, train) : Result{train};
  if (!scaled) return scaled.error();
  if (fingerprint(*scaled) == *notes.train_hash) return {};
  return Error{
      notes.data.data + ": has other rows than " + stored.path +
      " was trained on, so its test part may have rows that the model was trained on; valid: the "
      "data that it was trained on, or --data SOURCE for data that it was not trained on"};
}

/// Loads the data that the options name, else the data that the model was tested on.
Result<AnyData> data_for(const Registry& registry, const StoredModel& stored,
                         const EvaluateOptions& options) {
  const auto& notes = stored.notes;
  if (!options.data.empty()) {
    auto data = load_test_data(registry, options.data, options.seed.value_or(notes.data.seed),
                               notes.shape, notes.data.data);
    if (!data) return std::move(data).error().within("--data");
    return data;
  }
  auto train_and_test = load_data(registry, notes.data);
  if (!train_and_test) return data_unavailable_error(stored, train_and_test.error());
  if (!train_and_test->test)
    return Error{"--data: is needed, because " + stored.path + " was not tested on any data"};
  // The file of the data may have changed since the model was trained.
  if (const models::Table* table = train_and_test->test->table())
    if (auto alike = check_shape(stored, *table); !alike)
      return Error{alike.error()}.within(notes.data.data);
  if (!notes.data.test)
    if (auto same = check_training_rows(stored, train_and_test->train); !same)
      return std::move(same).error();
  return *std::move(train_and_test->test);
}

/// Refuses an output file that is the model's file or a file of its data.
Result<void> check_out(const Registry& registry, const EvaluateOptions& options,
                       const std::string& source) {
  std::vector<FileUse> taken{{"the model", options.model_file}};
  for (const std::string& file : files_in(registry, source)) taken.push_back({"the data", file});
  return check_no_conflict({"--out", options.out}, taken);
}

/// Puts the model on `device`. If that is not possible, keeps it on the CPU and prints a warning.
Result<ModelOnDevice> put_on_device(std::shared_ptr<const AnyModel> model,
                                    const models::Device& device) {
  // One row: the device then evaluates as many rows at once as its memory allows.
  auto moved = model->put_on_device(device, 1);
  if (!moved) return moved;
  if (!moved->note.empty()) print_error("--device: computing on the CPU: " + moved->note);
  if (moved->model == nullptr) moved->model = std::move(model);
  return moved;
}

/// Returns the labels as the data source has them, before scaling; empty if one is unknown.
std::vector<double> labels_of(const AnyData& data) {
  std::vector<double> labels;
  for (std::size_t row = 0; row < data.size(); ++row) {
    const auto label = data.label(row);
    if (!label) return {};
    const models::Table* table = data.table();
    const bool is_class = table != nullptr && table->classes() > 0;
    labels.push_back(
        is_class ? static_cast<double>(table->labelling.original(static_cast<float>(*label)))
                 : *label);
  }
  return labels;
}

/// Checks the options, and loads the model and its data.
Result<LoadedModel> prepare(const Registry& registry, const EvaluateOptions& options) {
  if (auto free = check_out(registry, options, options.data); !free) return std::move(free).error();
  auto stored = read_model(options.model_file,
                           options.accepts_missing_checksum ? Trust::any : Trust::checked);
  if (!stored) return std::move(stored).error();
  for (const auto& source : {stored->notes.data.data, stored->notes.data.test.value_or("")})
    if (options.data.empty())
      if (auto free = check_out(registry, options, source); !free) return std::move(free).error();
  auto data = data_for(registry, *stored, options);
  if (!data) return std::move(data).error();
  auto model = model_in(registry, *stored, *data,
                        options.data.empty() ? stored->notes.data.data : "--data: " + options.data);
  if (!model) return std::move(model).error();
  auto weights = weights_in(*stored, **model);
  if (!weights) return std::move(weights).error();
  auto moved = put_on_device(*std::move(model), options.device);
  if (!moved) return std::move(moved).error().within("--device");
  const bool uses_own_test_data = options.data.empty();
  std::vector<double> labels = labels_of(*data);
  auto scaled = stored->notes.shape ? scale_like(*stored->notes.shape, *data) : Result{*data};
  if (!scaled) return std::move(scaled).error().within("--data");
  return LoadedModel{
      std::move(moved->model),
      std::move(moved->device),
      *std::move(weights),
      *std::move(scaled),
      std::move(labels),
      uses_own_test_data ? "the test part of " + stored->notes.data.data : options.data,
      stored->notes.shape ? stored->notes.shape->labelling : models::Labelling{}};
}

/// Returns the text of a predicted label or class, as the training data writes it.
std::string prediction_text(const LoadedModel& loaded, double label) {
  return loaded.labelling.text(static_cast<float>(label));
}

/// Returns the text of a label that labels_of() returned.
std::string label_text(const LoadedModel& loaded, double label) {
  if (!loaded.labelling.names.empty()) return prediction_text(loaded, label);
  return loaded.data.table() != nullptr ? print_float(static_cast<float>(label))
                                        : print_number(label);
}

nlohmann::ordered_json json_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string json_of(const LoadedModel& loaded, const EvaluateOptions& options,
                    const models::Metrics& metrics, const PredictionMetrics& figures) {
  nlohmann::ordered_json json;
  json["model"] = loaded.model->print();
  json["model_file"] = options.model_file;
  json["device"] = loaded.device;
  json["data"] = loaded.source;
  json["samples"] = loaded.data.size();
  for (const auto& metric : metrics) json[metric.name] = metric.value;
  if (figures.targets) {
    json["rmse"] = figures.targets->rmse;
    json["mae"] = figures.targets->mae;
    json["r2"] = json_or_null(figures.targets->r2);
  }
  if (figures.auc) json["auc"] = *figures.auc;
  if (figures.classes) {
    auto classes = nlohmann::ordered_json::array();
    for (std::size_t c = 0; c < figures.classes->precision.size(); ++c)
      classes.push_back({{"class", prediction_text(loaded, static_cast<double>(c))},
                         {"precision", json_or_null(figures.classes->precision[c])},
                         {"recall", json_or_null(figures.classes->recall[c])}});
    json["precision"] = json_or_null(macro_precision(*figures.classes));
    json["recall"] = json_or_null(macro_recall(*figures.classes));
    json["classes"] = std::move(classes);
    if (!figures.classes->confusion.empty()) json["confusion"] = figures.classes->confusion;
  }
  return json_text(json) + "\n";
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

/// Returns a table with a row for each class: its precision, its recall, and its row of the
/// confusion matrix, which has a column for each predicted class.
std::string classes_text(const LoadedModel& loaded, const ClassificationMetrics& metrics) {
  constexpr std::size_t classes_shown_max = 20;
  const std::size_t classes = metrics.precision.size();
  if (classes > classes_shown_max)
    return fmt::format("  (for the metrics of {} classes, use --json)\n", classes);
  std::string text = fmt::format("\n  {:<12}{:>10}{:>10}   predicted as\n  {:<12}{:>10}{:>10}",
                                 "class", "precision", "recall", "", "", "");
  for (std::size_t c = 0; c < classes; ++c)
    text += fmt::format("{:>8}", prediction_text(loaded, static_cast<double>(c)));
  text += "\n";
  for (std::size_t c = 0; c < classes; ++c) {
    text += fmt::format("  {:<12}{:>10}{:>10}", prediction_text(loaded, static_cast<double>(c)),
                        share_text(metrics.precision[c]), share_text(metrics.recall[c]));
    for (const std::uint64_t count : metrics.confusion[c]) text += fmt::format("{:>8}", count);
    text += "\n";
  }
  return text + fmt::format("  {:<12}{:>10}{:>10}\n", "mean", share_text(macro_precision(metrics)),
                            share_text(macro_recall(metrics)));
}

std::string table_of(const LoadedModel& loaded, const models::Metrics& metrics,
                     const PredictionMetrics& figures) {
  std::string text = fmt::format("{} on {} ({})\n", printable(loaded.model->print()),
                                 printable(loaded.source), describe(loaded.data));
  const auto row = [&](const std::string& name, double value) {
    text += fmt::format("  {:<12}{:.6g}\n", name, value);
  };
  for (const auto& metric : metrics) row(metric.name, metric.value);
  if (figures.targets) {
    row("rmse", figures.targets->rmse);
    row("mae", figures.targets->mae);
    if (figures.targets->r2) row("r2", *figures.targets->r2);
  }
  if (figures.auc) row("auc", *figures.auc);
  if (figures.classes) text += classes_text(loaded, *figures.classes);
  return text;
}

/// Returns a CSV cell, in quotes if it needs them.
std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + "\"";
}

/// The columns to write beside the predictions.
struct Columns {
  std::vector<std::string> names;
  /// A value for each sample and column, sample by sample.
  std::vector<double> values;
};

/// Returns the scores or the probabilities, as the options ask; no columns if they ask for neither.
Result<Columns> columns_of(const LoadedModel& loaded, const EvaluateOptions& options) {
  Columns columns;
  if (!options.probabilities && !options.scores) return columns;
  const auto scores = loaded.model->scores(loaded.weights, loaded.data);
  const std::string model = "model " + loaded.model->print();
  if (!scores)
    return Error{std::string{options.scores ? "--scores" : "--probabilities"} + ": " + model +
                 " computes no scores; valid: a model with the function scores()"};
  if (options.scores) {
    for (std::size_t c = 0; c < scores->columns; ++c)
      columns.names.push_back("score_" + std::to_string(c));
    const bool is_target = loaded.labelling.classes == 0;
    for (const float score : scores->values)
      columns.values.push_back(
          static_cast<double>(is_target ? loaded.labelling.original(score) : score));
    return columns;
  }
  auto shares = probabilities(*scores);
  if (!shares)
    return Error{
        "--probabilities: " + model +
        " computes no probabilities; valid: logistic, softmax, a net of classes, or --scores"};
  const std::size_t classes = shares->size() / loaded.data.size();
  for (std::size_t c = 0; c < classes; ++c)
    columns.names.push_back("probability_" + prediction_text(loaded, static_cast<double>(c)));
  columns.values = *std::move(shares);
  return columns;
}

/// Returns the predictions as CSV, with the labels if they are known, and with `columns`.
std::string csv_of(const LoadedModel& loaded, const std::vector<float>& predictions,
                   const Columns& columns) {
  const models::Table* table = loaded.data.table();
  const bool has_labels = !loaded.labels.empty();
  const bool has_ids = table != nullptr && !table->ids.empty();
  std::string text = has_ids ? "id,prediction" : "index,prediction";
  if (has_labels) text += ",label";
  for (const std::string& name : columns.names) text += "," + quoted_cell(name);
  text += "\n";
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    text += (has_ids ? quoted_cell(table->ids[i]) : std::to_string(i)) + "," +
            quoted_cell(prediction_text(loaded, static_cast<double>(predictions[i])));
    if (has_labels) text += "," + quoted_cell(label_text(loaded, loaded.labels[i]));
    for (std::size_t c = 0; c < columns.names.size(); ++c)
      text += "," + print_number(columns.values[i * columns.names.size() + c]);
    text += "\n";
  }
  return text;
}

}  // namespace

Result<int> evaluate_command(const Registry& registry, const EvaluateOptions& options) {
  const auto loaded = prepare(registry, options);
  if (!loaded) return loaded.error();
  if (auto labelled = check_labels(loaded->data, loaded->source); !labelled)
    return std::move(labelled).error().within("--data");
  const auto metrics = loaded->model->evaluate(loaded->weights, loaded->data);
  const PredictionMetrics figures =
      prediction_metrics(*loaded->model, loaded->weights, loaded->data);
  return write_stdout(options.json ? json_of(*loaded, options, metrics, figures)
                                   : table_of(*loaded, metrics, figures),
                      done);
}

Result<int> predict_command(const Registry& registry, const EvaluateOptions& options) {
  if (options.probabilities && options.scores)
    return Error{"--probabilities and --scores exclude each other; valid: one of them"};
  if (!options.out.empty())
    if (auto writable = check_writable(options.out); !writable)
      return std::move(writable).error().within("--out");
  const auto loaded = prepare(registry, options);
  if (!loaded) return loaded.error();
  const auto predictions = loaded->model->predict(loaded->weights, loaded->data);
  if (!predictions)
    return Error{"model " + loaded->model->print() +
                 " makes no predictions; valid: a model with the function predict()"};
  const auto columns = columns_of(*loaded, options);
  if (!columns) return columns.error();
  const std::string csv = csv_of(*loaded, *predictions, *columns);
  if (options.out.empty()) return write_stdout(csv, done);
  const GracefulStop graceful{nullptr};  // a signal does not interrupt replace_file()
  if (auto written = replace_file(options.out, csv); !written) {
    print_error(written.error().message);
    return job_failed;
  }
  return write_stdout(fmt::format("{} predictions in {}\n", predictions->size(), options.out),
                      done);
}

}  // namespace starling::program
