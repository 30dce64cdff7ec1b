/// Wraps an algorithm for the engines as an AnyModel, so that a program trains, submits, saves and
/// evaluates it like a model. Include this header only where algorithms are registered.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/engines/algorithm.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/core/training/hand_ins.hpp"
#include "starling/engine/sim/protocol/learn.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/device.hpp"

namespace starling::program {

/// Implements AnyModel with an algorithm over data of type D.
template <class T, class D>
class AlgorithmOf final : public AnyModel {
 public:
  /// Makes the algorithm for `data`. Requires: `data` outlives the algorithm.
  using Make = std::function<Result<actor::Algorithm<T>>(const D& data)>;

  /// print() returns `text`. `made` is the algorithm for a data set that may have no samples yet (a
  /// job that is only described): it gives the parameters. To run the algorithm, the functions
  /// below call `make` with their data.
  AlgorithmOf(actor::Algorithm<T> made, Make make, std::string text)
      : made_(std::move(made)), make_(std::move(make)), text_(std::move(text)) {}

  [[nodiscard]] std::string print() const override { return text_; }
  [[nodiscard]] ElementType element_type() const override { return program::element_type<T>; }
  [[nodiscard]] std::vector<models::Parameter> parameters() const override {
    return actor::parameters_of(made_);
  }
  [[nodiscard]] models::Recipe recipe() const override {
    return {.optimizer = models::Sgd{}, .steps = 1};
  }
  [[nodiscard]] bool learns_by_gradients() const override { return false; }
  [[nodiscard]] core::Layout layout(const actor::JobOptions& job) const override {
    return actor::layout_of(made_, job);
  }

  [[nodiscard]] Result<void> accepts(const AnyData& data) const override {
    if (data.as<D>() == nullptr)
      return Error{"algorithm " + text_ + " computes with data of another type"};
    // An evaluation makes the algorithm for its data too, so it must be possible to make it.
    if (!made_.evaluate) return {};
    const auto made = make_for(data);
    if (!made) return made.error();
    const auto is_alike = [](const models::Parameter& a, const models::Parameter& b) {
      return a.name == b.name && a.shape == b.shape && a.row_sparse == b.row_sparse;
    };
    if (!std::ranges::equal(actor::parameters_of(**made), parameters(), is_alike))
      return Error{"algorithm " + text_ +
                   " has other tensors for this data than for its training data; valid: data of "
                   "the same shape"};
    return {};
  }
  [[nodiscard]] Result<void> accepts_batch(std::size_t) const override { return {}; }
  [[nodiscard]] Result<ModelOnDevice> put_on_device(const models::Device& device,
                                                    std::size_t) const override {
    if (auto allowed = refuse_cuda(
            device, "algorithm " + text_ + " computes on the CPU only; valid: cpu, auto");
        !allowed)
      return std::move(allowed).error();
    return ModelOnDevice{nullptr, models::print(models::Device{})};
  }

  [[nodiscard]] Result<actor::Outcome> train(const AnyData& data, const AnyData* test,
                                             const actor::TrainOptions& options) const override {
    auto job = assign(data, options, test);
    if (!job) return std::move(job).error();
    return actor::run_job(job->job, std::move(job->task), std::move(job->applier),
                          std::move(job->initial_states));
  }
  [[nodiscard]] std::function<double()> make_stepper(const AnyData&,
                                                     const models::LoopOptions&) const override {
    throw std::invalid_argument{"algorithm " + text_ + " does not learn by gradients"};
  }
  [[nodiscard]] Result<std::vector<core::RangeState>> initial_state(
      const AnyData& data, const actor::TrainOptions& options) const override {
    auto job = assign(data, options);
    if (!job) return std::move(job).error();
    return std::move(job->initial_states);
  }
  [[nodiscard]] Result<std::unique_ptr<actor::LocalJob>> make_local_job(
      const AnyData& data, const actor::TrainOptions& options,
      actor::LocalJobOptions local_options) const override {
    auto job = assign(data, options);
    if (!job) return std::move(job).error();
    return actor::make_local_job(*std::move(job), std::move(local_options));
  }

  [[nodiscard]] Result<sim::ProtocolResult> simulate(
      const AnyData& data, const AnyData* test, const sim::LearnOptions& options) const override {
    actor::TrainOptions train;
    train.job.mode = options.protocol.mode;
    train.job.workers = options.protocol.workers;
    train.job.shards = options.protocol.shards;
    train.job.seed = options.protocol.seed;
    auto assigned = assign(data, train, test);
    if (!assigned) return std::move(assigned).error();
    if (auto valid = sim::check(options.protocol); !valid) return std::move(valid).error();
    const std::shared_ptr<actor::Task> task = assigned->task;
    const auto scratch = std::make_shared<actor::Scratch>();
    sim::Job job;
    job.layout = std::shared_ptr<const core::Layout>{task, &task->layout()};
    job.initial_states = std::move(assigned->initial_states);
    job.applier = std::move(assigned->applier);
    job.compute = [task, scratch](core::MemberId worker, const core::Compute& read) {
      actor::StepResult result =
          task->compute({worker, read.step, read.share, read.values}, *scratch);
      if (result.fault) throw std::runtime_error{*result.fault};
      return std::move(result.update);
    };
    if (task->chooses_reads())
      job.plan = [task](core::MemberId worker, const core::Plan& plan) {
        return task->plan({worker, plan.step, plan.share, {}});
      };
    job.evaluate = [task, scratch](const std::vector<core::RangeState>& states) {
      return task->evaluate(states, false, *scratch);
    };
    sim::Protocol protocol{options.protocol, std::move(job)};
    protocol.on_point = options.on_point;
    protocol.run();
    return protocol.result();
  }

  [[nodiscard]] models::Metrics metrics_of_one_sample(const AnyData& data) const override {
    auto initial = initial_state(data, {});
    return initial ? evaluate_states(data, *initial) : models::Metrics{};
  }
  [[nodiscard]] models::Metrics evaluate(const Weights& w, const AnyData& data) const override {
    return evaluate_states(
        data, core::to_ranges<T>(layout(actor::JobOptions{}), std::get<std::vector<T>>(w)));
  }
  [[nodiscard]] std::optional<std::vector<float>> predict(const Weights&,
                                                          const AnyData&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::optional<Scores> scores(const Weights&, const AnyData&) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::optional<double> normalised_error(const Weights&, const AnyData&,
                                                       std::uint64_t) const override {
    return std::nullopt;
  }
  [[nodiscard]] Weights collect(const actor::JobOptions& job,
                                std::span<const core::RangeState> states) const override {
    return core::to_vector<T>(layout(job), states);
  }

 private:
  /// Makes the algorithm for `data`, and checks it.
  [[nodiscard]] Result<std::shared_ptr<const actor::Algorithm<T>>> make_for(
      const AnyData& data) const {
    auto made = make_(*data.as<D>());
    if (!made) return std::move(made).error();
    if (auto valid = actor::check(*made); !valid) return std::move(valid).error();
    return std::make_shared<const actor::Algorithm<T>>(*std::move(made));
  }
  /// The assignment's evaluations compute the metrics over `test` or, if it is null, over `data`.
  [[nodiscard]] Result<actor::Assignment> assign(const AnyData& data,
                                                 const actor::TrainOptions& options,
                                                 const AnyData* test = nullptr) const {
    auto algorithm = make_for(data);
    if (!algorithm) return std::move(algorithm).error();
    if (test != nullptr && (*algorithm)->evaluate) {
      auto tested = make_for(*test);
      if (!tested) return std::move(tested).error().within("test");
      auto both = std::make_shared<actor::Algorithm<T>>(**algorithm);
      both->evaluate = [tested = *std::move(tested)](const actor::Tensors<T>& tensors) {
        return tested->evaluate(tensors);
      };
      *algorithm = std::move(both);
    }
    if (auto valid = core::check_needs_no_gradients(options.job.barrier); !valid)
      return std::move(valid).error();
    if (auto valid = core::check_exchange_without_gradients(options.job.exchange); !valid)
      return std::move(valid).error();
    return actor::assign_algorithm<T>(*std::move(algorithm), options.job, options.resume);
  }
  [[nodiscard]] models::Metrics evaluate_states(const AnyData& data,
                                                std::span<const core::RangeState> states) const {
    const auto algorithm = make_for(data);
    return algorithm ? actor::evaluate(**algorithm, actor::JobOptions{}, states)
                     : models::Metrics{};
  }

  actor::Algorithm<T> made_;
  Make make_;
  std::string text_;
};

}  // namespace starling::program
