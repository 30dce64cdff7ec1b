#include "starling/tools/cluster/follow/job_notes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "starling/actor/engines/engine_keys.hpp"
#include "starling/base/json_text.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/tools/job/target.hpp"
#include "starling/tools/registry/prediction_metrics.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;

/// The name of the notes in errors about them.
constexpr const char* origin = "the nodes' notes on the job";

/// A model of which only the description is known.
class DescribedModel final : public ModelDescription {
 public:
  DescribedModel(std::string text, ElementType type, std::vector<models::Parameter> parameters,
                 models::Recipe recipe, bool learns_by_gradients)
      : text_(std::move(text)),
        type_(type),
        parameters_(std::move(parameters)),
        recipe_(recipe),
        learns_by_gradients_(learns_by_gradients) {}

  [[nodiscard]] std::string print() const override { return text_; }
  [[nodiscard]] ElementType element_type() const override { return type_; }
  [[nodiscard]] std::vector<models::Parameter> parameters() const override { return parameters_; }
  [[nodiscard]] models::Recipe recipe() const override { return recipe_; }
  [[nodiscard]] bool learns_by_gradients() const override { return learns_by_gradients_; }
  [[nodiscard]] core::Layout layout(const actor::JobOptions& job) const override {
    const std::size_t owners = actor::owner_count(job);
    // The tensors of an algorithm share no ranges.
    if (!learns_by_gradients_)
      return actor::detail::KeyTable::make(parameters_, element_bytes(type_), owners)
          .value()
          .layout();
    return core::make_layout(parameters_, element_bytes(type_), owners);
  }
  [[nodiscard]] Weights collect(const actor::JobOptions& job,
                                std::span<const core::RangeState> states) const override {
    if (type_ == ElementType::float32) return core::to_vector<float>(layout(job), states);
    return core::to_vector<double>(layout(job), states);
  }

 private:
  std::string text_;
  ElementType type_;
  std::vector<models::Parameter> parameters_;
  models::Recipe recipe_;
  bool learns_by_gradients_;
};

Json json_of(const models::Parameter& parameter) {
  return {{"name", parameter.name},
          {"shape", parameter.shape},
          {"row_sparse", parameter.row_sparse},
          {"decay", parameter.decay},
          {"trained", parameter.trained}};
}

models::Parameter parameter_in(const Json& json) {
  return {.name = json.at("name"),
          .shape = json.at("shape"),
          .row_sparse = json.at("row_sparse"),
          .decay = json.at("decay"),
          .trained = json.at("trained")};
}

Json json_of(const models::Recipe& recipe) {
  return {{"optimizer", models::print(recipe.optimizer)},
          {"decays_rate", recipe.decays_rate},
          {"decays_weights", recipe.decays_weights},
          {"standardises", recipe.standardises},
          {"steps", recipe.steps}};
}

/// Throws if the optimizer is unknown.
models::Recipe recipe_in(const Json& json) {
  const auto optimizer = models::parse_optimizer(json.at("optimizer").get<std::string>());
  if (!optimizer) throw std::invalid_argument{optimizer.error().message};
  return {.optimizer = *optimizer,
          .decays_rate = json.at("decays_rate"),
          .decays_weights = json.at("decays_weights"),
          .standardises = json.at("standardises"),
          .steps = json.at("steps")};
}

/// Returns the tensors of the scaling as lists of numbers, by name.
Json json_of(const std::vector<safetensors::View>& tensors) {
  Json json = Json::object();
  for (const safetensors::View& tensor : tensors) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    json[tensor.name] = values;
  }
  return json;
}

std::vector<safetensors::Tensor> tensors_in(const Json& json) {
  std::vector<safetensors::Tensor> tensors;
  for (const auto& [name, list] : json.items()) {
    const std::vector<float> values = list;
    const auto bytes = std::as_bytes(std::span{values});
    tensors.push_back(
        {name, safetensors::Dtype::f32, {values.size()}, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

/// Throws if `json` does not have all that write_job_notes() writes.
Result<JobNotes> notes_of(const Json& json) {
  const safetensors::File file{.metadata = json.at("metadata"),
                               .tensors = tensors_in(json.at("scaling"))};
  auto model = notes_in(origin, file);
  if (!model) return std::move(model).error();
  JobNotes notes{.model = *std::move(model)};
  std::vector<models::Parameter> parameters;
  for (const Json& parameter : json.at("parameters")) parameters.push_back(parameter_in(parameter));
  if (auto valid = models::check(parameters); !valid)
    return std::move(valid).error().within(origin);
  const bool learns_by_gradients = json.at("learns_by_gradients");
  if (!learns_by_gradients)
    if (auto valid =
            actor::detail::KeyTable::make(parameters, element_bytes(notes.model.element_type), 1);
        !valid)
      return std::move(valid).error().within(origin);
  notes.description = std::make_shared<const DescribedModel>(
      notes.model.model, notes.model.element_type, std::move(parameters),
      recipe_in(json.at("recipe")), learns_by_gradients);
  notes.data = {json.at("train_samples"), json.at("test_samples"),
                printable(json.at("data").get<std::string>())};
  if (const Json& baseline = json.at("baseline"); !baseline.is_null())
    notes.advice.baseline = {{baseline.at("metric"), baseline.at("value")}, baseline.at("loss")};
  if (const Json& metrics = json.at("metrics"); !metrics.is_null()) {
    notes.metrics.emplace();
    for (const Json& name : metrics)
      notes.metrics->push_back({printable(name.get<std::string>()), 0});
  }
  for (const Json& name : json.at("evaluation_metrics"))
    notes.evaluation_metrics.push_back(printable(name.get<std::string>()));
  notes.has_normalised_error = json.at("has_normalised_error");
  notes.advice.labels_hint = printable(json.at("labels_hint").get<std::string>());
  notes.resume_note = printable(json.at("resume_note").get<std::string>());
  if (notes.data.train_samples == 0) return Error{std::string{origin} + ": name no samples"};
  return notes;
}

}  // namespace

std::string write_job_notes(const PreparedRun& ready) {
  Json parameters = Json::array();
  for (const auto& parameter : ready.description->parameters())
    parameters.push_back(json_of(parameter));
  const models::Table* table = ready.data.train.table();
  Json json{{"metadata", to_metadata(ready.notes)},
            {"scaling", json_of(scaling_tensors(ready.notes))},
            {"parameters", std::move(parameters)},
            {"recipe", json_of(ready.description->recipe())},
            {"learns_by_gradients", ready.description->learns_by_gradients()},
            {"data", ready.resolved.data_shape},
            {"train_samples", ready.resolved.train_samples},
            {"test_samples", ready.resolved.test_samples},
            {"metrics", Json::array()},
            {"evaluation_metrics", Json::array()},
            {"baseline", nullptr},
            {"labels_hint", ready.data_advice.labels_hint},
            {"has_normalised_error", table != nullptr && !table->true_weights.empty()},
            {"resume_note", ready.resume_note}};
  if (const AnyData* test = ready.test()) {
    try {
      Json metrics = Json::array();
      for (const auto& metric : ready.model->metrics_of_one_sample(*test))
        metrics.push_back(metric.name);
      json["evaluation_metrics"] = metric_names(*ready.model, *test);
      json["metrics"] = std::move(metrics);
    } catch (...) {  // the user's model throws for these parameters
      // Only `until`, `patience` and `keep` need the names.
      json["metrics"] = nullptr;
    }
  }
  if (const auto& baseline = ready.data_advice.baseline;
      baseline && std::isfinite(baseline->figure.value) && std::isfinite(baseline->loss))
    json["baseline"] = {{"metric", baseline->figure.name},
                        {"value", baseline->figure.value},
                        {"loss", baseline->loss}};
  return json_text(json);
}

Result<JobNotes> read_job_notes(const std::string& text) {
  try {
    return notes_of(Json::parse(text));
  } catch (const std::exception& fault) {
    return Error{std::string{origin} + ": " + printable(fault.what())};
  }
}

Result<RecordedRun> describe_run(Job job, const Settings& settings, JobNotes notes) {
  job.data.scale = notes.model.data.scale;
  const bool has_test_data = notes.data.test_samples > 0;
  const auto& until = job.train.job.until;
  if (until && !has_test_data)
    return add_location(Error{"until: there is no test data; valid: --test SOURCE"}, settings);
  if (until && job.evaluate_every == core::Step{0})
    return add_location(
        Error{"until: has no effect with eval-every 0; valid: eval-every of 1 or more"}, settings);
  if (until && notes.metrics)
    if (auto valid = check_target(*until, *notes.metrics, notes.evaluation_metrics); !valid)
      return add_location(std::move(valid).error(), settings);
  const bool has_loss = notes.metrics
                            ? std::ranges::count(*notes.metrics, "loss", &models::Metric::name) > 0
                            : has_test_data;
  if (auto valid = check_test_loss(job, notes.model.model, has_test_data, has_loss); !valid)
    return add_location(std::move(valid).error(), settings);
  RecordedRun run{.resolved = resolve_job(job, settings, *notes.description, notes.data)};
  print_batch_note(job, run.resolved, settings);
  run.job = std::move(job);
  run.description = std::move(notes.description);
  run.notes = std::move(notes.model);
  run.data_advice = std::move(notes.advice);
  run.resume_note = std::move(notes.resume_note);
  if (!run.job.checkpoint.empty() || !run.job.resume.empty())
    run.identity = job_identity_of(run.resolved, run.job.data, run.notes.train_hash);
  return run;
}

}  // namespace starling::program
