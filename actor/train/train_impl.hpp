/// The templates of train.hpp; include that.
#pragma once

#include <string>

#include "starling/actor/train/train.hpp"

namespace starling::actor {

template <class M, class D>
requires models::Model<M, D> StepResult TrainTask<M, D>::compute(const StepInput& input,
                                                                 Scratch& scratch) {
  Random random = Random::stream(seed_, input.worker, input.step);
  auto [update, loss, fault] =
      gradients_.compute(input.worker, input.step, input.values, random, scratch);
  return {std::move(update), loss, std::move(fault)};
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
requires models::Model<M, D> Result<Assignment<typename M::Scalar>> assign_training(
    const M& model, const D& data, std::type_identity_t<const D*> test,
    const TrainOptions& options) {
  using T = typename M::Scalar;
  if (options.batch == 0) return Error{"batch=0: a batch holds at least 1 sample"};
  if (options.job.workers == 0) return Error{"workers=0: a job needs at least 1 worker"};
  if (data.size() == 0) return Error{"the training data has no samples"};
  const auto parameters = model.parameters();
  if (parameters.empty()) return Error{"the model has no parameters: there is nothing to train"};
  if (auto valid = models::check(parameters); !valid) return std::move(valid).error();
  if constexpr (models::CheckedModel<M, D>)
    if (auto accepted = model.accepts(data); !accepted) return std::move(accepted).error();
  Assignment<T> all{.job = options.job, .task = nullptr, .applier = {}, .start = options.resume};
  if (options.epochs) {
    if (!(std::isfinite(*options.epochs) && *options.epochs >= 0))
      return Error{"epochs must be a finite number >= 0"};
    all.job.steps = steps_in(*options.epochs, options, data.size());
  }
  auto task = std::make_shared<TrainTask<M, D>>(model, data, test, options);
  if (all.start.empty()) {
    std::vector<T> w(task->layout().size);
    Random random = Random::stream(options.job.seed, initial_stream);
    if (auto fault = fault_of([&] { model.initialise(std::span<T>{w}, random); }))
      return Error{"initialise: " + *std::move(fault)};
    all.start = to_ranges<T>(task->layout(), w);
  }
  all.applier = core::GradientApplier{.optimizer = options.optimizer,
                                      .schedule = options.schedule,
                                      .l2 = options.l2,
                                      .batch = task->batch_size()};
  all.task = std::move(task);
  return all;
}

template <class M, class D>
requires models::Model<M, D> Result<Outcome> train(const M& model, const D& data,
                                                   std::type_identity_t<const D*> test,
                                                   const TrainOptions& options) {
  auto job = assign_training(model, data, test, options);
  if (!job) return std::move(job).error();
  return run_job<typename M::Scalar>(job->job, std::move(job->task), std::move(job->applier),
                                     std::move(job->start));
}

}  // namespace starling::actor
