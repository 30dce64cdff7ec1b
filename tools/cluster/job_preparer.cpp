#include "starling/tools/cluster/job_preparer.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/exchange/layout.hpp"
#include "starling/tools/cluster/flow_preparer.hpp"
#include "starling/tools/cluster/follow/job_notes.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/memory.hpp"
#include "starling/tools/registry/prediction_metrics.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/prepare.hpp"

namespace starling::program {
namespace {

/// Returns a hash of the training data and of the test data. A client may ask any node of the job
/// to evaluate the model on either.
std::uint64_t data_fingerprint_of(const PreparedRun& prepared) {
  // If the data is a table, the notes have its hash, which takes a pass over all data to compute.
  const auto& known = prepared.notes.train_hash;
  const std::uint64_t hash = known ? *known : program::fingerprint(prepared.data.train);
  return prepared.data.test ? mix(hash ^ mix(program::fingerprint(*prepared.data.test))) : hash;
}

/// Returns a hash of the data, the resumed state, the model and the number of steps. `data` is the
/// hash of the data. The settings of a job may leave the last two to defaults.
std::uint64_t fingerprint_of(const PreparedRun& prepared, std::uint64_t data) {
  std::uint64_t hash = data ^ program::fingerprint(prepared.resolved.options.resume);
  for (const char c : prepared.resolved.model) hash = mix(hash ^ static_cast<unsigned char>(c));
  return mix(hash ^ prepared.resolved.options.job.steps);
}

/// A training job whose data and model are in memory.
class PreparedTraining final : public actor::PreparedJob {
 public:
  explicit PreparedTraining(PreparedRun prepared)
      : prepared_(std::move(prepared)),
        data_fingerprint_(data_fingerprint_of(prepared_)),
        fingerprint_(fingerprint_of(prepared_, data_fingerprint_)),
        layout_(prepared_.model->layout(options())) {}

  [[nodiscard]] const actor::JobOptions& options() const override {
    return prepared_.resolved.options.job;
  }
  [[nodiscard]] std::size_t ranges() const override { return layout_.ranges.size(); }
  [[nodiscard]] std::uint64_t updates_in_checkpoint() const override {
    return prepared_.resolved.updates_before;
  }
  [[nodiscard]] std::uint64_t steps_in_checkpoint() const override {
    return prepared_.resolved.steps_before;
  }
  [[nodiscard]] std::string resume_note() const override { return prepared_.resume_note; }
  [[nodiscard]] core::Step steps_per_data_epoch() const override {
    return prepared_.resolved.steps_per_epoch;
  }
  [[nodiscard]] Result<void> check_memory(std::size_t nodes) const override {
    return check_memory_of_node(*prepared_.model, prepared_.resolved.options, nodes);
  }
  /// Draws the model's initial values now, because that takes long, and make_local_job() must not
  /// take long. Writes the notes first: to find the names of metrics, write_job_notes() computes
  /// with a model, and check_memory() has found memory for it.
  [[nodiscard]] Result<void> make_initial_values() const override {
    notes_ = write_job_notes(prepared_);
    auto states = prepared_.model->initial_state(prepared_.data.train, prepared_.resolved.options);
    if (!states) return std::move(states).error();
    prepared_.resolved.options.resume = *std::move(states);
    return {};
  }
  [[nodiscard]] Result<void> set_checkpoint_history(const std::vector<models::FormerDeal>& deals,
                                                    std::uint64_t updates,
                                                    std::uint64_t steps) const override {
    if (auto valid = models::check_deals(deals, prepared_.resolved.train_samples); !valid)
      return valid;
    prepared_.resolved.options.job.former_deals = deals;
    prepared_.resolved.updates_before = updates;
    prepared_.resolved.steps_before = steps;
    return {};
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return fingerprint_; }
  [[nodiscard]] std::uint64_t data_fingerprint() const override { return data_fingerprint_; }
  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      actor::LocalJobOptions local_options) const override {
    return prepared_.model->make_local_job(prepared_.data.train, prepared_.resolved.options,
                                           std::move(local_options));
  }
  [[nodiscard]] std::string model() const override { return prepared_.resolved.model; }
  [[nodiscard]] const std::string& notes() const override { return notes_; }
  [[nodiscard]] Result<void> check_range(const core::RangeState& state) const override {
    if (state.range < layout_.ranges.size() && !state.value.rows && state.slots.empty() &&
        state.ledger.empty() && state.value.count == layout_.ranges[state.range].count &&
        core::fits(layout_.ranges[state.range], state.value,
                   element_bytes(prepared_.model->element_type())))
      return {};
    return Error{"range " + std::to_string(state.range) + " is not of this model"};
  }
  [[nodiscard]] Result<wire::ModelMetrics> evaluate(
      const wire::EvaluateModel& request) const override {
    const Evaluator& evaluator = *prepared_.evaluator;
    wire::ModelMetrics result;
    if (request.part == wire::DataPart::none) {
      result.normalised_error = evaluator.normalised_error(request.states);
      return result;
    }
    const bool is_test = request.part == wire::DataPart::test;
    if (is_test && !evaluator.has_test_data()) return Error{"the job has no test data"};
    models::Metrics metrics = is_test ? evaluator.on_test_data(request.states)
                                      : evaluator.on_training_data(request.states);
    const auto& data = is_test ? *prepared_.data.test : prepared_.data.train;
    const bool is_missing = !request.metric.empty() &&
                            std::ranges::count(metrics, request.metric, &models::Metric::name) == 0;
    if (is_missing)
      if (const auto value = metric_of(*prepared_.model, prepared_.weights_in(request.states), data,
                                       request.metric))
        metrics.push_back({request.metric, *value});
    for (const auto& [name, value] : metrics) result.metrics.emplace_back(name, value);
    return result;
  }

 private:
  /// Changed by make_initial_values() and set_checkpoint_history().
  mutable PreparedRun prepared_;
  std::uint64_t data_fingerprint_;
  std::uint64_t fingerprint_;
  /// Written by make_initial_values().
  mutable std::string notes_;
  core::Layout layout_;
};

}  // namespace

bool is_for_follower(std::string_view key) {
  constexpr std::array<std::string_view, 11> keys{
      "save", "metrics",    "report",           "json",       "quiet",   "trace",
      "keep", "checkpoint", "checkpoint-every", "eval-every", "patience"};
  return std::ranges::count(keys, key) > 0;
}

wire::JobSettings to_wire(const Settings& settings) {
  wire::JobSettings sent;
  for (const Setting& setting : settings)
    if (!is_for_follower(setting.key)) sent.emplace_back(setting.key, setting.text);
  return sent;
}

Result<Settings> from_wire(const wire::JobSettings& received) {
  Settings settings;
  for (const auto& [key, text] : received) {
    if (is_for_follower(key) || find_key(key) == nullptr)
      return Error{"'" + key + "': is not an option of a job that nodes receive"};
    if (printable(text) != text)
      return Error{"'" + printable(text) + "' holds characters that cannot be printed"}.within(
          "--" + key);
    settings.push_back({key, text, "--" + key});
  }
  return settings;
}

actor::JobPreparer job_preparer(const Registry& registry) {
  return
      [&registry](
          const wire::JobSettings& received) -> Result<std::shared_ptr<const actor::PreparedJob>> {
        if (!actor::setting_of(received, "flow").empty()) return prepare_flow(registry, received);
        auto converted = from_wire(received);
        if (!converted) return std::move(converted).error();
        Settings settings = *std::move(converted);
        settings.push_back({"quiet", "true", "--quiet"});
        auto prepared = prepare(registry, settings, "");
        if (!prepared) return std::move(prepared).error();
        return std::shared_ptr<const actor::PreparedJob>{
            std::make_shared<PreparedTraining>(*std::move(prepared))};
      };
}

}  // namespace starling::program
