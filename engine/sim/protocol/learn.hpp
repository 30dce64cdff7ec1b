/// Trains a model in virtual time, message by message: the simulated counterpart of actor::train.
///
///     sim::LearnOptions options;
///     options.protocol.mode = core::Mode::peer;
///     options.protocol.barrier = barrier::parse("pssp:s=4,beta=2").value();
///     options.protocol.step_time = parse_distribution("gamma:mean=20ms,shape=2").value();
///     options.protocol.link.latency = parse_distribution("exp:1ms").value();
///     options.protocol.link.loss = 0.1;
///     options.protocol.horizon = 10s;
///     auto result = sim::learn(model, training_data, &test_data, options);
///     for (const sim::ProtocolPoint& point : result->curve) ...
///
/// The result is a function of the options, the model and the data. Several threads may call
/// learn() at a time. To simulate faults and partitions, pass the result of make_job() to a
/// Protocol.
#pragma once

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/engine/core/training/compression.hpp"
#include "starling/engine/core/training/hand_ins.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/engine/work/compressor.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/models/batch_sizes.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"

namespace starling::sim {

struct LearnOptions {
  ProtocolOptions protocol = {};
  models::Optimizer optimizer = models::Sgd{};
  models::Schedule schedule = {};
  /// How each worker clips each of its gradients.
  models::Clip clip = {};
  /// Which part of each clipped gradient a worker sends.
  models::Compression compression = {};
  /// The L2 weight decay, for the parameters to which weight decay applies.
  double l2 = 0;
  /// The number of samples that a worker uses in one step, but at most its share of the data.
  /// If `dynamic_batches`, the number of samples that all workers use in one step: their batches
  /// are sized by their speeds.
  std::size_t batch = 64;
  bool dynamic_batches = false;
  /// The number of passes over the training data; if given, it replaces protocol.steps.
  std::optional<double> epochs = std::nullopt;
  /// With `epochs`: no worker makes more steps than this.
  Step steps_max = barrier::unlimited;
  /// Called at each point of the curve. If it returns false, the run ends.
  std::function<bool(const ProtocolPoint&)> on_point = {};
};

/// A function that computes the metrics of a parameter vector, for a point of the curve.
template <class T>
using MetricsFunction = std::function<models::Metrics(std::span<const T>)>;

/// Returns the job with which a Protocol trains `model` on `data`. Both must outlive the job.
/// `compute_metrics` computes the metrics of the curve.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Job make_job(const M& model, const D& data, const LearnOptions& options,
                           MetricsFunction<typename M::Scalar> compute_metrics) {
  using T = typename M::Scalar;
  const ProtocolOptions& protocol = options.protocol;
  const auto gradients = std::make_shared<const core::Gradients<M, D>>(
      model, data,
      core::GradientOptions{.workers = protocol.workers,
                            .batch = options.batch,
                            .dynamic = options.dynamic_batches,
                            .clip = options.clip,
                            .seed = protocol.seed},
      core::make_layout(model.parameters(), sizeof(T), owner_count(protocol)));
  std::vector<T> w(gradients->layout()->size);
  Random random = Random::stream(protocol.seed, core::initial_stream);
  model.initialise(std::span<T>{w}, random);

  Job job;
  job.layout = gradients->layout();
  job.initial_states = core::to_ranges<T>(*job.layout, w);
  job.applier = core::gradient_applier<T>({.optimizer = options.optimizer,
                                           .schedule = options.schedule,
                                           .l2 = options.l2,
                                           .batch = gradients->batch_size(),
                                           .is_batch_of_all = options.dynamic_batches});
  job.has_early_parts = gradients->has_early_parts() &&
                        (!models::compresses(options.compression) || protocol.rounds_to_bf16);
  job.deal = {.samples = data.size(),
              .batch = options.batch,
              .dynamic = options.dynamic_batches,
              .by_samples = barrier::hands_in_early(protocol.barrier),
              .seed = protocol.seed,
              .epochs = options.epochs,
              .steps_max = options.steps_max,
              .workers = protocol.workers};
  const auto compressors = std::make_shared<std::map<MemberId, core::UpdateCompressor>>();
  job.compute = [gradients, seed = protocol.seed, compression = options.compression,
                 compresses = models::compresses(options.compression) && !protocol.rounds_to_bf16,
                 compressors, scratch = std::make_shared<core::Scratch>()](
                    MemberId worker, const core::Compute& request) {
    Random step_random = Random::stream(seed, worker, request.step);
    core::Gradient gradient =
        gradients->compute(worker, request.step, request.values, step_random, *scratch,
                           request.share, {.samples_max = request.samples_max});
    if (gradient.fault) throw std::runtime_error{*gradient.fault};
    if (compresses)
      compressors->try_emplace(worker, compression, gradients->layout())
          .first->second.compress(gradient.update);
    return std::move(gradient.update);
  };
  if (gradients->by_rows())
    job.plan = [gradients](MemberId worker, const core::Plan& plan) {
      return gradients->plan(worker, plan.step, plan.share);
    };
  if (compute_metrics)
    job.evaluate = [layout = job.layout, compute_metrics = std::move(compute_metrics)](
                       const std::vector<core::RangeState>& states) {
      return compute_metrics(core::to_vector<T>(*layout, states));
    };
  return job;
}

/// Initialises `model` and trains it on `data`. `compute_metrics` computes the metrics of the
/// curve; without it, these are the model's own metrics on `test`, or on `data` if `test` is null.
/// Returns an error if the options are not valid, if the model cannot learn from the data, or if
/// computing throws outside a worker's step. If the job fails later, `ProtocolResult::error` says
/// why.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Result<ProtocolResult> learn(
    const M& model, const D& data, std::type_identity_t<const D*> test, const LearnOptions& options,
    MetricsFunction<typename M::Scalar> compute_metrics = {}) {
  using T = typename M::Scalar;
  if (options.batch == 0) return Error{"batch=0: a batch holds at least 1 sample"};
  if (options.dynamic_batches && options.batch < options.protocol.workers)
    return models::small_total_error(options.batch, options.protocol.workers);
  if (data.size() == 0) return Error{"the training data has no samples"};
  if (auto valid = models::check(model.parameters()); !valid) return std::move(valid).error();
  if constexpr (models::CheckedModel<M, D>)
    if (auto accepted = model.accepts(data); !accepted) return std::move(accepted).error();
  LearnOptions completed = options;
  if (auto valid = core::check_hand_ins(options.protocol.barrier, options.dynamic_batches,
                                        model.parameters());
      !valid)
    return std::move(valid).error();
  if (auto valid = core::check_compression(options.compression, options.protocol.exchange,
                                           options.protocol.barrier, model.parameters(), sizeof(T));
      !valid)
    return std::move(valid).error();
  completed.protocol.rounds_to_bf16 =
      core::exchange_compresses(options.compression, options.protocol.exchange);
  if (options.epochs) {
    if (!(std::isfinite(*options.epochs) && *options.epochs >= 0))
      return Error{"epochs=" + print_number(*options.epochs) + "; valid: a finite number >= 0"};
    const models::SampleOrder order =
        models::first_order(data.size(), std::max<std::size_t>(1, options.protocol.workers),
                            options.batch, options.dynamic_batches, 0);
    // If workers hand in early, they end when the samples are taken.
    completed.protocol.steps =
        std::min(options.steps_max, barrier::hands_in_early(options.protocol.barrier)
                                        ? models::steps_max_in(*options.epochs, data.size())
                                        : order.steps_in_epochs(*options.epochs));
  }
  if (auto valid = check(completed.protocol); !valid) return std::move(valid).error();
  if (!compute_metrics)
    compute_metrics = [&model, &evaluated = test == nullptr ? data : *test,
                       arena = std::make_shared<models::Arena>()](std::span<const T> w) {
      return models::evaluate_all(model, w, evaluated, *arena);
    };
  try {
    Protocol protocol{completed.protocol,
                      make_job(model, data, completed, std::move(compute_metrics))};
    protocol.on_point = options.on_point;
    protocol.run();
    return protocol.result();
  } catch (const std::exception& fault) {
    return Error{std::string{"the model: "} + fault.what()};
  }
}

}  // namespace starling::sim
