/// Wraps a model of any type as an AnyModel. Include this header only where models are registered,
/// because it includes the code that trains and simulates.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/train/train.hpp"
#include "starling/engine/sim/protocol/learn.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/device.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// A model that can return the scores from which it derives its predictions: outputs() scores for
/// each sample.
template <class M, class D>
concept ScoringModel = models::Model<M, D> &&
    requires(const M model, std::span<const typename M::Scalar> w, const D data,
             models::Batch batch, models::ComputeContext context,
             std::span<typename M::Scalar> out) {
  model.scores(w, data, batch, context, out);
  { model.outputs() } -> std::convertible_to<std::size_t>;
  { model.link() } -> std::same_as<models::Link>;
};

/// Implements AnyModel with a model M over data of type D.
template <class M, class D>
requires models::Model<M, D>
class ModelOf final : public AnyModel {
 public:
  using T = typename M::Scalar;

  /// print() returns `text`.
  ModelOf(M model, std::string text) : model_(std::move(model)), text_(std::move(text)) {}

  [[nodiscard]] std::string print() const override { return text_; }
  [[nodiscard]] ElementType element_type() const override { return program::element_type<T>; }
  [[nodiscard]] std::vector<models::Parameter> parameters() const override {
    return model_.parameters();
  }
  [[nodiscard]] models::Recipe recipe() const override {
    if constexpr (requires { model_.recipe(); }) return model_.recipe();
    return {};
  }
  [[nodiscard]] core::Layout layout(const actor::JobOptions& job) const override {
    return actor::layout_of<T>(model_.parameters(), job);
  }

  [[nodiscard]] Result<void> accepts(const AnyData& data) const override {
    const D* typed = data.as<D>();
    if (typed == nullptr) return Error{"model " + text_ + " learns from data of another type"};
    if constexpr (models::CheckedModel<M, D>) return model_.accepts(*typed);
    return {};
  }
  [[nodiscard]] Result<void> accepts_batch([[maybe_unused]] std::size_t samples) const override {
    if constexpr (requires { model_.accepts_batch(samples); }) return model_.accepts_batch(samples);
    return {};
  }

  [[nodiscard]] Result<ModelOnDevice> put_on_device(const models::Device& device,
                                                    std::size_t rows) const override {
    if constexpr (std::is_same_v<M, models::Net<float>>) {
      auto moved = program::put_on_device(model_, device, rows);
      if (!moved) return std::move(moved).error();
      return ModelOnDevice{std::make_shared<ModelOf>(std::move(moved->net), text_),
                           std::move(moved->device), std::move(moved->note)};
    }
    const bool is_net = std::is_same_v<M, models::Net<double>>;
    if (auto allowed = refuse_cuda(
            device,
            is_net ? "a net of float64 computes on the CPU only; valid: cpu, auto, or dtype float32"
                   : "model " + text_ +
                         " computes on the CPU only; valid: cpu, auto, "
                         "or a net like lenet5");
        !allowed)
      return std::move(allowed).error();
    return ModelOnDevice{nullptr, models::print(models::Device{})};
  }

  [[nodiscard]] Result<actor::Outcome> train(const AnyData& data, const AnyData* test,
                                             const actor::TrainOptions& options) const override {
    return actor::train(model_, *data.as<D>(), test == nullptr ? nullptr : test->as<D>(), options);
  }

  [[nodiscard]] std::function<double()> make_stepper(
      const AnyData& data, const models::LoopOptions& options) const override {
    const auto loop = std::make_shared<models::TrainingLoop<M, D>>(model_, *data.as<D>(), options);
    return [loop] { return loop->step(); };
  }

  [[nodiscard]] Result<std::vector<core::RangeState>> initial_state(
      const AnyData& data, const actor::TrainOptions& options) const override {
    auto job = actor::assign_training(model_, *data.as<D>(), nullptr, options);
    if (!job) return std::move(job).error();
    return std::move(job->initial_states);
  }

  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      const AnyData& data, const actor::TrainOptions& options,
      actor::LocalJobOptions local_options) const override {
    auto job = actor::assign_training(model_, *data.as<D>(), nullptr, options);
    if (!job) return std::move(job).error();
    return actor::make_local_job(*std::move(job), std::move(local_options));
  }

  [[nodiscard]] Result<sim::ProtocolResult> simulate(
      const AnyData& data, const AnyData* test, const sim::LearnOptions& options) const override {
    const AnyData& evaluated = test == nullptr ? data : *test;
    const auto metrics_of = [&](std::span<const T> w) {
      const Weights weights = std::vector<T>(w.begin(), w.end());
      models::Metrics metrics = evaluate(weights, evaluated);
      if (const auto error = normalised_error(weights, data, options.protocol.seed))
        metrics.push_back({"error", *error});
      return metrics;
    };
    return sim::learn(model_, *data.as<D>(), nullptr, options, sim::MetricsFunction<T>{metrics_of});
  }

  [[nodiscard]] models::Metrics metrics_of_one_sample(const AnyData& data) const override {
    const std::vector<T> w = initial_parameters(1);
    const std::uint32_t first_row = 0;
    models::Arena arena;
    Random random{0};
    models::ComputeContext context{.random = random, .arena = arena, .training = false};
    return model_.evaluate(std::span<const T>{w}, *data.as<D>(), models::Batch{&first_row, 1},
                           context);
  }

  [[nodiscard]] models::Metrics evaluate(const Weights& w, const AnyData& data) const override {
    models::Arena arena;
    return models::evaluate_all(model_, values(w), *data.as<D>(), arena);
  }

  [[nodiscard]] std::optional<std::vector<float>> predict(const Weights& w,
                                                          const AnyData& data) const override {
    if constexpr (models::PredictingModel<M, D>) {
      models::Arena arena;
      return models::predict_all(model_, values(w), *data.as<D>(), arena);
    }
    (void)w, (void)data;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Scores> scores(const Weights& w, const AnyData& data) const override {
    if constexpr (ScoringModel<M, D>) {
      Scores result{model_.outputs(), model_.link(), {}};
      result.values.reserve(data.size() * result.columns);
      std::vector<T> chunk_scores;
      models::Arena arena;
      const D& samples = *data.as<D>();
      models::for_each_batch(samples, arena, [&](models::Batch rows, auto& context) {
        chunk_scores.assign(rows.size() * result.columns, T{});
        model_.scores(values(w), samples, rows, context, chunk_scores);
        for (const T score : chunk_scores) result.values.push_back(static_cast<float>(score));
      });
      return result;
    }
    (void)w, (void)data;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<double> normalised_error(const Weights& w, const AnyData& data,
                                                       std::uint64_t seed) const override {
    if constexpr (requires(std::span<const T> v) { model_.weights(v); }) {
      const models::Table* table = data.table();
      if (table == nullptr || table->true_weights.empty()) return std::nullopt;
      const std::vector<T> initial = initial_parameters(seed);
      const auto initial_error =
          distance(model_.weights(std::span<const T>{initial}), table->true_weights);
      const auto error = distance(model_.weights(values(w)), table->true_weights);
      if (!initial_error || !error || *initial_error == 0) return std::nullopt;
      return *error / *initial_error;
    }
    (void)w, (void)data, (void)seed;
    return std::nullopt;
  }

  [[nodiscard]] Weights collect(const actor::JobOptions& job,
                                std::span<const core::RangeState> states) const override {
    return actor::to_vector<T>(layout(job), states);
  }

 private:
  static std::span<const T> values(const Weights& w) { return std::get<std::vector<T>>(w); }

  /// Returns the parameters with which a job with this seed begins.
  [[nodiscard]] std::vector<T> initial_parameters(std::uint64_t seed) const {
    std::vector<T> w(models::total_size(model_.parameters()));
    Random random = Random::stream(seed, actor::initial_stream);
    model_.initialise(std::span<T>{w}, random);
    return w;
  }

  /// Returns the Euclidean distance; nothing if the sizes differ.
  static std::optional<double> distance(std::span<const T> w, const std::vector<float>& truth) {
    if (w.size() != truth.size()) return std::nullopt;
    double sum = 0;
    for (std::size_t i = 0; i < w.size(); ++i)
      sum += std::pow(static_cast<double>(w[i]) - static_cast<double>(truth[i]), 2);
    return std::sqrt(sum);
  }

  M model_;
  std::string text_;
};

template <class M, class D>
std::shared_ptr<const AnyModel> any_model_of(M model, std::string text) {
  return std::make_shared<ModelOf<M, D>>(std::move(model), std::move(text));
}

}  // namespace starling::program
