/// The templates that train.hpp declares. Include train.hpp instead.
#pragma once

#include <optional>
#include <string>

#include "starling/actor/train/train.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {

template <class M, class D>
requires models::Model<M, D> StepResult TrainTask<M, D>::compute(const StepInput& input,
                                                                 Scratch& scratch) {
  Random random = Random::stream(seed_, input.worker, input.step);
  std::optional<core::PartsSink> sink;
  if (input.on_parts && !buckets_.empty()) sink.emplace(core::PartsSink{buckets_, input.on_parts});
  auto [update, fault] = gradients_.compute(input.worker, input.step, input.values, random, scratch,
                                            input.share, input.cut, sink ? &*sink : nullptr);
  return {std::move(update), std::move(fault)};
}

template <class M, class D>
requires models::Model<M, D> models::Metrics TrainTask<M, D>::evaluate(
    std::span<const core::RangeState> model, bool on_training_data, Scratch& scratch) {
  const D* data = on_training_data ? &train_ : test_;
  if (data == nullptr) return {};
  const auto w = to_vector<T>(layout(), model);
  return models::evaluate_all(gradients_.model(), std::span<const T>{w}, *data, scratch.work);
}

template <class M, class D>
requires models::Model<M, D> Result<Assignment> assign_training(const M& model, const D& data,
                                                                std::type_identity_t<const D*> test,
                                                                const TrainOptions& options) {
  using T = typename M::Scalar;
  if (options.batch == 0) return Error{"batch=0: a batch holds at least 1 sample"};
  if (auto valid = check_rules(options); !valid) return std::move(valid).error();
  if (auto valid = core::check_exchange(options.job.exchange); !valid)
    return std::move(valid).error();
  if (options.job.cache)
    if (auto valid = core::check_cache(options.optimizer); !valid) return std::move(valid).error();
  if (options.job.workers == 0) return Error{"workers=0: a job needs at least 1 worker"};
  if (options.dynamic_batches && options.batch < options.job.workers)
    return models::small_total_error(options.batch, options.job.workers);
  if (data.size() == 0) return Error{"the training data has no samples"};
  constexpr std::uint64_t samples_max = UINT32_MAX;
  for (const std::uint64_t size : {data.size(), test != nullptr ? test->size() : 0})
    if (size > samples_max)
      return Error{"the data has " + std::to_string(size) + " samples; valid: up to " +
                   std::to_string(samples_max)};
  if (options.dynamic_batches && options.batch > samples_max)
    return Error{"batch=" + std::to_string(options.batch) + ": dynamic batches have up to " +
                 std::to_string(samples_max) + " samples in all"};
  const auto parameters = model.parameters();
  if (parameters.empty()) return Error{"the model has no parameters: there is nothing to train"};
  if (auto valid = models::check(parameters); !valid) return std::move(valid).error();
  if constexpr (models::CheckedModel<M, D>) {
    if (auto accepted = model.accepts(data); !accepted) return std::move(accepted).error();
    if (test != nullptr && test->size() > 0)
      if (auto accepted = model.accepts(*test); !accepted)
        return std::move(accepted).error().within("test");
  }
  if (auto valid = models::check_deals(options.job.former_deals, data.size()); !valid)
    return std::move(valid).error().within("the saved state");
  if (auto valid = core::check_hand_ins(options.job.barrier, options.dynamic_batches, parameters);
      !valid)
    return std::move(valid).error();
  if (auto valid = core::check_compression(options.compression, options.job.exchange,
                                           options.job.barrier, parameters, sizeof(T));
      !valid)
    return std::move(valid).error();
  Assignment assignment{.job = options.job,
                        .task = nullptr,
                        .applier = {},
                        .initial_states = options.resume,
                        .deal = {.samples = data.size(),
                                 .batch = options.batch,
                                 .dynamic = options.dynamic_batches,
                                 .by_samples = barrier::hands_in_early(options.job.barrier),
                                 .seed = options.job.seed,
                                 .epochs = options.epochs,
                                 .steps_max = options.steps_max,
                                 .workers = options.job.workers,
                                 .former = options.job.former_deals}};
  if (options.epochs) {
    if (!(std::isfinite(*options.epochs) && *options.epochs >= 0))
      return Error{"epochs=" + print_number(*options.epochs) + "; valid: a finite number >= 0"};
    // If workers hand in early, they end when the samples are taken.
    assignment.job.steps =
        std::min(options.steps_max, barrier::hands_in_early(options.job.barrier)
                                        ? models::steps_max_in(*options.epochs, data.size())
                                        : steps_in_epochs(*options.epochs, options, data.size()));
  }
  auto task = std::make_shared<TrainTask<M, D>>(model, data, test, options);
  if (assignment.initial_states.empty()) {
    std::vector<T> w(task->layout().size);
    Random random = Random::stream(options.job.seed, initial_stream);
    if (auto fault = run_catching([&] { model.initialise(std::span<T>{w}, random); }))
      return Error{"initialise: " + *std::move(fault)};
    assignment.initial_states = to_ranges<T>(task->layout(), w);
  }
  assignment.applier = core::gradient_applier<T>({.optimizer = options.optimizer,
                                                  .schedule = options.schedule,
                                                  .l2 = options.l2,
                                                  .batch = task->batch_size(),
                                                  .is_batch_of_all = options.dynamic_batches});
  assignment.task = std::move(task);
  return assignment;
}

template <class M, class D>
requires models::Model<M, D> Result<Outcome> train(const M& model, const D& data,
                                                   std::type_identity_t<const D*> test,
                                                   const TrainOptions& options) {
  const bool is_endless = options.job.steps == barrier::unlimited && !options.epochs &&
                          !options.job.time && !options.job.stop_when;
  if (is_endless && options.job.until && (test == nullptr || test->size() == 0))
    return Error{"the job would never end: until needs test data, and there is none"};
  auto assignment = assign_training(model, data, test, options);
  if (!assignment) return std::move(assignment).error();
  return run_job(assignment->job, std::move(assignment->task), std::move(assignment->applier),
                 std::move(assignment->initial_states), std::move(assignment->deal));
}

}  // namespace starling::actor
