/// Wraps a model of any type as an AnyModel. Include it only where models are registered, because
/// it includes the engines.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
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

namespace starling::program {

/// A model that predicts one number for each sample.
template <class M, class D>
concept PredictingModel = models::Model<M, D> &&
    requires(const M model, std::span<const typename M::Scalar> w, const D data,
             models::Batch batch, models::Pass pass, std::span<float> out) {
  model.predict(w, data, batch, pass, out);
};

/// A model that gives the scores behind its predictions, outputs() for each sample.
template <class M, class D>
concept ScoringModel = models::Model<M, D> &&
    requires(const M model, std::span<const typename M::Scalar> w, const D data,
             models::Batch batch, models::Pass pass, std::span<typename M::Scalar> out) {
  model.scores(w, data, batch, pass, out);
  { model.outputs() } -> std::convertible_to<std::size_t>;
  { model.link() } -> std::same_as<models::Link>;
};

/// Implements AnyModel by a model M over data of type D.
template <class M, class D>
requires models::Model<M, D>
class ModelOf final : public AnyModel {
 public:
  using T = typename M::Scalar;

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
    const D* own = data.as<D>();
    if (own == nullptr) return Error{"model " + text_ + " learns from data of another type"};
    if constexpr (models::CheckedModel<M, D>) return model_.accepts(*own);
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
    if (auto fits = check_on_cpu(
            device,
            is_net ? "a net of float64 computes on the CPU only; valid: cpu, auto, or dtype float32"
                   : "model " + text_ +
                         " computes on the CPU only; valid: cpu, auto, "
                         "or a net like lenet5");
        !fits)
      return std::move(fits).error();
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
    return std::move(job->start);
  }

  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      const AnyData& data, const actor::TrainOptions& options,
      actor::LocalJobOptions local_options) const override {
    auto job = actor::assign_training(model_, *data.as<D>(), nullptr, options);
    if (!job) return std::move(job).error();
    return actor::make_local_job<T>(*std::move(job), std::move(local_options));
  }

  [[nodiscard]] Result<sim::ProtocolResult> simulate(
      const AnyData& data, const AnyData* test, const sim::LearnOptions& options) const override {
    const AnyData& shown = test == nullptr ? data : *test;
    const auto figures = [&](std::span<const T> w) {
      const Weights weights = std::vector<T>(w.begin(), w.end());
      models::Metrics all = evaluate(weights, shown);
      if (const auto error = normalised_error(weights, data, options.protocol.seed))
        all.push_back({"error", *error});
      return all;
    };
    return sim::learn(model_, *data.as<D>(), nullptr, options, sim::Figures<T>{figures});
  }

  [[nodiscard]] models::Metrics try_metrics(const AnyData& data) const override {
    const std::vector<T> w = initial_parameters(1);
    const std::uint32_t first = 0;
    models::Arena arena;
    Random random{0};
    models::Pass pass{.random = random, .arena = arena, .training = false};
    return model_.evaluate(std::span<const T>{w}, *data.as<D>(), models::Batch{&first, 1}, pass);
  }

  [[nodiscard]] models::Metrics evaluate(const Weights& w, const AnyData& data) const override {
    models::Arena arena;
    return models::evaluate_all(model_, values(w), *data.as<D>(), arena);
  }

  [[nodiscard]] std::optional<std::vector<float>> predict(const Weights& w,
                                                          const AnyData& data) const override {
    if constexpr (PredictingModel<M, D>) return predictions(values(w), *data.as<D>());
    (void)w, (void)data;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Scores> scores(const Weights& w, const AnyData& data) const override {
    if constexpr (ScoringModel<M, D>) {
      Scores all{model_.outputs(), model_.link(), {}};
      all.values.reserve(data.size() * all.columns);
      std::vector<T> some;
      for_chunks(*data.as<D>(), [&](models::Batch rows, models::Pass& pass) {
        some.assign(rows.size() * all.columns, T{});
        model_.scores(values(w), *data.as<D>(), rows, pass, some);
        for (const T score : some) all.values.push_back(static_cast<float>(score));
      });
      return all;
    }
    (void)w, (void)data;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<double> normalised_error(const Weights& w, const AnyData& data,
                                                       std::uint64_t seed) const override {
    if constexpr (requires(std::span<const T> v) { model_.weights(v); }) {
      const models::Table* table = data.table();
      if (table == nullptr || table->truth.empty()) return std::nullopt;
      const std::vector<T> first = initial_parameters(seed);
      const auto before = distance(model_.weights(std::span<const T>{first}), table->truth);
      const auto after = distance(model_.weights(values(w)), table->truth);
      if (!before || !after || *before == 0) return std::nullopt;
      return *after / *before;
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

  /// Returns the parameters with which a job of this seed begins.
  [[nodiscard]] std::vector<T> initial_parameters(std::uint64_t seed) const {
    std::vector<T> w(models::total_size(model_.parameters()));
    Random random = Random::stream(seed, actor::initial_stream);
    model_.initialise(std::span<T>{w}, random);
    return w;
  }

  /// Calls `visit(rows, pass)` for chunks of samples until all were visited.
  template <class Visit>
  static void for_chunks(const D& data, Visit visit) {
    std::vector<std::uint32_t> rows;
    models::Arena arena;
    const std::size_t size = data.size();
    for (std::size_t first = 0; first < size; first += models::evaluation_rows_max) {
      rows.resize(std::min(models::evaluation_rows_max, size - first));
      std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(first));
      arena.reset();
      Random random{0};
      models::Pass pass{.random = random, .arena = arena, .training = false};
      visit(models::Batch{rows}, pass);
    }
  }

  [[nodiscard]] std::vector<float> predictions(std::span<const T> w, const D& data) const {
    std::vector<float> out(data.size());
    for_chunks(data, [&](models::Batch rows, models::Pass& pass) {
      model_.predict(w, data, rows, pass, std::span{out}.subspan(rows.front(), rows.size()));
    });
    return out;
  }

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
