#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "starling/app/commands.hpp"
#include "starling/app/file_output.hpp"
#include "starling/app/file_use.hpp"
#include "starling/app/interrupt.hpp"
#include "starling/app/model_file.hpp"
#include "starling/base/text.hpp"
#include "starling/models/affine.hpp"

namespace starling::app {
namespace {

/// A saved model beside the data it is to be used on.
struct Use {
  std::shared_ptr<const AnyModel> model;
  std::string device;
  Weights weights;
  AnyData data;
  std::string source;
  models::Labelling labelling;
};

Error cannot_be_had(const StoredModel& stored, const Error& error) {
  return Error{stored.path + ": its data cannot be had (" + error.message +
               "); valid: --data SOURCE"};
}

/// The data that a model was tested on, or the one that was named.
Result<AnyData> data_for(const Contents& contents, const StoredModel& stored,
                         const EvaluateOptions& options) {
  const auto& notes = stored.notes;
  if (!options.data.empty()) {
    std::optional<models::Labelling> rule;
    if (notes.shape) rule = notes.shape->labelling;
    auto data = load_unseen(contents, options.data, options.seed.value_or(notes.data.seed), rule);
    if (!data) return std::move(data).error().within("--data");
    return data;
  }
  auto both = load_data(contents, notes.data);
  if (!both) return cannot_be_had(stored, both.error());
  if (!both->test) return Error{"--data: is needed, " + stored.path + " was tested on none"};
  return *std::move(both->test);
}

/// Predictions may not overwrite what they are made from.
Result<void> check_out(const Contents& contents, const EvaluateOptions& options,
                       const std::string& source) {
  std::vector<FileUse> taken{{"the model", options.model_file}};
  for (const std::string& file : files_in(contents, source)) taken.push_back({"the data", file});
  return check_free({"--out", options.out}, taken);
}

/// `model` where it is to be computed.
Result<PlacedModel> place(std::shared_ptr<const AnyModel> model, const models::Device& device) {
  auto placed = model->on(device, models::rows_at_once);
  if (!placed) return placed;
  if (!placed->note.empty()) complain("--device: computing on the CPU: " + placed->note);
  if (placed->model == nullptr) placed->model = std::move(model);
  return placed;
}

Result<Use> prepare(const Contents& contents, const EvaluateOptions& options) {
  if (auto free = check_out(contents, options, options.data); !free) return std::move(free).error();
  auto stored = read_model(options.model_file, options.trusts_file ? Trust::any : Trust::checked);
  if (!stored) return std::move(stored).error();
  for (const auto& source : {stored->notes.data.data, stored->notes.data.test.value_or("")})
    if (options.data.empty())
      if (auto free = check_out(contents, options, source); !free) return std::move(free).error();
  auto data = data_for(contents, *stored, options);
  if (!data) return std::move(data).error();
  auto model = model_in(contents, *stored, *data);
  if (!model) return std::move(model).error();
  auto weights = weights_in(*stored, **model);
  if (!weights) return std::move(weights).error();
  auto placed = place(*std::move(model), options.device);
  if (!placed) return std::move(placed).error().within("--device");
  const bool own = options.data.empty();
  return Use{std::move(placed->model),
             std::move(placed->device),
             *std::move(weights),
             *std::move(data),
             own ? "the test part of " + stored->notes.data.data : options.data,
             stored->notes.shape ? stored->notes.shape->labelling : models::Labelling{}};
}

std::string json_of(const Use& use, const EvaluateOptions& options,
                    const models::Metrics& metrics) {
  nlohmann::ordered_json json;
  json["model"] = use.model->print();
  json["model_file"] = options.model_file;
  json["device"] = use.device;
  json["data"] = use.source;
  json["samples"] = use.data.size();
  for (const auto& metric : metrics) json[metric.name] = metric.value;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string table_of(const Use& use, const models::Metrics& metrics) {
  std::string text = fmt::format("{} on {} ({})\n", printable(use.model->print()),
                                 printable(use.source), describe(use.data));
  for (const auto& metric : metrics)
    text += fmt::format("  {:<12}{:.6g}\n", metric.name, metric.value);
  return text;
}

std::string rows_of(const Use& use, const std::vector<float>& predictions) {
  const bool labelled = use.data.label(0).has_value();
  const auto written = [&](double value) {
    return print_number(static_cast<double>(use.labelling.written(static_cast<float>(value))));
  };
  std::string text = labelled ? "index,prediction,label\n" : "index,prediction\n";
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    text += std::to_string(i) + "," + written(static_cast<double>(predictions[i]));
    if (labelled) text += "," + written(*use.data.label(i));
    text += "\n";
  }
  return text;
}

}  // namespace

Result<int> evaluate_command(const Contents& contents, const EvaluateOptions& options) {
  const auto use = prepare(contents, options);
  if (!use) return use.error();
  const auto metrics = use->model->evaluate(use->weights, use->data);
  return put_out(options.json ? json_of(*use, options, metrics) : table_of(*use, metrics), done);
}

Result<int> predict_command(const Contents& contents, const EvaluateOptions& options) {
  if (!options.out.empty())
    if (auto writable = check_writable(options.out); !writable)
      return std::move(writable).error().within("--out");
  const auto use = prepare(contents, options);
  if (!use) return use.error();
  const auto predictions = use->model->predict(use->weights, use->data);
  if (!predictions) return Error{"model " + use->model->print() + " has no predict()"};
  const std::string rows = rows_of(*use, *predictions);
  if (options.out.empty()) return put_out(rows, done);
  const OrderlyStop orderly{nullptr};  // what is begun is finished
  if (auto written = replace_file(options.out, rows); !written) {
    complain(written.error().message);
    return job_failed;
  }
  return put_out(fmt::format("{} predictions in {}\n", predictions->size(), options.out), done);
}

}  // namespace starling::app
