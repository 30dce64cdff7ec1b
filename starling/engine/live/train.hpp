/// Training a model on data with many workers: the main job.
///
///     starling::live::TrainOptions options;
///     options.job.workers = 8;
///     options.job.barrier = starling::barrier::parse("pssp:s=4,beta=2").value();
///     auto outcome = starling::live::train(model, training_data, test_data, options);
///
/// Model and data are plain values that satisfy models::Model; see docs/write-a-model.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/core/gradients.hpp"
#include "starling/engine/live/job.hpp"
#include "starling/models/clip.hpp"
#include "starling/models/data/order.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/models/kernels.hpp"
#include "starling/models/model.hpp"
#include "starling/models/optimizer.hpp"
#include "starling/models/schedule.hpp"

namespace starling::live {

struct TrainOptions {
  JobOptions job;
  models::Optimizer optimizer = models::Sgd{};
  models::Schedule schedule = {};
  /// Applied by each worker to each of its gradients.
  models::Clip clip = {};
  /// Weight decay, for parameters that take it.
  double l2 = 0;
  /// Samples of one step of one worker; a worker's share of the data where that is less.
  std::size_t batch = 64;
  /// Passes over the training data; replaces job.steps where given.
  std::optional<double> epochs = std::nullopt;
  /// A saved state to go on from, one for each range; empty: a fresh model.
  std::vector<core::RangeState> resume = {};
};

using core::initial_stream;
using core::to_ranges;
using core::to_vector;

/// Steps of one worker in one epoch over `samples` samples.
[[nodiscard]] inline core::Step steps_per_epoch(const TrainOptions& options, std::size_t samples) {
  return models::SampleOrder{samples, options.job.workers, options.batch, 0}.steps_per_epoch();
}

/// Steps of one worker in `epochs` passes over `samples` samples: 1 at least, but none in 0 epochs.
/// Requires: epochs >= 0.
[[nodiscard]] inline core::Step steps_in(double epochs, const TrainOptions& options,
                                         std::size_t samples) {
  return core::steps_in(epochs, steps_per_epoch(options, samples));
}

/// The ranges that a model of these parameters is cut into under `options`.
template <class T>
[[nodiscard]] core::Layout layout_of(std::vector<models::Parameter> parameters,
                                     const JobOptions& options) {
  return core::cut(std::move(parameters), sizeof(T), owner_count(options));
}

/// A model and its data as a Task: reads the parameters, computes one batch's gradient, hands it
/// over. `Data` outlives the task.
template <class M, class D>
requires models::Model<M, D>
class TrainTask final : public Task {
 public:
  using T = typename M::Scalar;

  TrainTask(const M& model, const D& train, const D* test, const TrainOptions& options)
      : train_(train),
        test_(test),
        seed_(options.job.seed),
        gradients_(model, train,
                   {.workers = options.job.workers,
                    .batch = options.batch,
                    .clip = options.clip,
                    .seed = options.job.seed},
                   layout_of<T>(model.parameters(), options.job)) {}

  [[nodiscard]] const core::Layout& layout() const override { return *gradients_.layout(); }

  [[nodiscard]] bool plans() const override { return gradients_.by_rows(); }

  /// Samples of a full batch of one worker.
  [[nodiscard]] std::size_t batch_size() const { return gradients_.batch_size(); }

  std::vector<core::RangeRows> plan(core::WorkerId worker, core::Step step) override {
    return gradients_.plan(worker, step);
  }
  StepResult compute(const StepInput& input, Scratch& scratch) override;
  void prefetch(core::WorkerId worker, core::Step step, Scratch& scratch) override {
    gradients_.prefetch(worker, step, scratch);
  }
  models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                           Scratch& scratch) override;

 private:
  const D& train_;
  const D* test_;
  std::uint64_t seed_;
  core::Gradients<M, D> gradients_;
};

/// All that a job's workers and owners need to know.
template <class T>
struct Assignment {
  /// With the steps that its epochs are.
  JobOptions job;
  std::shared_ptr<Task> task;
  core::Applier<T> applier;
  /// What each range holds when the job starts.
  std::vector<core::RangeState> start;
};

/// What training `model` is; refuses options that cannot work. The same on every machine that has
/// the same data. `data` and `test`, which may be null, outlive it.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Result<Assignment<typename M::Scalar>> assign_training(
    const M& model, const D& data, std::type_identity_t<const D*> test,
    const TrainOptions& options);

/// Trains `model`; blocks until the job has ended. `test` may be null. See JobOptions for stopping,
/// progress and saving; errors of the options come back before anything starts.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Result<Outcome> train(const M& model, const D& data,
                                    std::type_identity_t<const D*> test,
                                    const TrainOptions& options);

/// The task's layout and the parameters at the end of `outcome`, as one vector.
template <class M>
[[nodiscard]] std::vector<typename M::Scalar> parameters_of(const M& model,
                                                            const TrainOptions& options,
                                                            const Outcome& outcome) {
  using T = typename M::Scalar;
  return to_vector<T>(layout_of<T>(model.parameters(), options.job), outcome.model);
}

}  // namespace starling::live

#include "starling/engine/live/train_impl.hpp"
