/// Trains a model on data with many workers: the main kind of job.
///
///     starling::actor::TrainOptions options;
///     options.job.workers = 8;
///     options.job.barrier = starling::barrier::parse("pssp:s=4,beta=2").value();
///     auto outcome = starling::actor::train(model, training_data, test_data, options);
///
/// The types of `model` and of the data satisfy models::Model; see docs/write-a-model.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "starling/actor/job/assignment.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/base/check.hpp"
#include "starling/engine/core/training/compression.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/core/training/hand_ins.hpp"
#include "starling/engine/work/gradients.hpp"
#include "starling/models/batch_sizes.hpp"
#include "starling/models/evaluate.hpp"
#include "starling/models/kernels/kernels.hpp"
#include "starling/models/model.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::actor {

using core::initial_stream;
using core::to_ranges;
using core::to_vector;

/// Divides the parameters of a model into ranges, as a job with `options` needs them.
template <class T>
[[nodiscard]] core::Layout layout_of(std::vector<models::Parameter> parameters,
                                     const JobOptions& options) {
  return core::make_layout(std::move(parameters), sizeof(T), owner_count(options));
}

/// A model and its data as a Task. A step computes the gradient of one batch from the parameters
/// that the worker has read. Requires: `train` and `test` outlive the task. `test` may be null.
template <class M, class D>
requires models::Model<M, D>
class TrainTask final : public Task {
 public:
  using T = typename M::Scalar;

  TrainTask(const M& model, const D& train, const D* test, const TrainOptions& options)
      : train_(train),
        test_(test),
        seed_(options.job.seed),
        rounds_to_bf16_(core::exchange_compresses(options.compression, options.job.exchange)),
        compression_(rounds_to_bf16_ ? models::Compression{} : options.compression),
        gradients_(model, train,
                   {.workers = options.job.workers,
                    .batch = options.batch,
                    .dynamic = options.dynamic_batches,
                    .clip = options.clip,
                    .seed = options.job.seed,
                    .former_deals = options.job.former_deals},
                   layout_of<T>(model.parameters(), options.job)) {
    if (has_early_parts())
      buckets_ = core::exchange_buckets(options.job.exchange, layout(), sizeof(T));
  }

  [[nodiscard]] const core::Layout& layout() const override { return *gradients_.layout(); }

  [[nodiscard]] bool chooses_reads() const override { return gradients_.by_rows(); }
  [[nodiscard]] models::Compression compression() const override { return compression_; }
  [[nodiscard]] bool has_early_parts() const override {
    return gradients_.has_early_parts() && !models::compresses(compression_);
  }
  [[nodiscard]] bool rounds_to_bf16() const override { return rounds_to_bf16_; }

  /// The number of samples in a full batch of one worker or, if batches are dynamic, of all
  /// workers.
  [[nodiscard]] std::size_t batch_size() const { return gradients_.batch_size(); }

  std::vector<core::RangeRows> plan(const StepInput& input) override {
    return gradients_.plan(input.worker, input.step, input.share);
  }
  StepResult compute(const StepInput& input, Scratch& scratch) override;
  void prefetch(const StepInput& input, Scratch& scratch) override {
    gradients_.prefetch(input.worker, input.step, scratch, input.share);
  }
  models::Metrics evaluate(std::span<const core::RangeState> model, bool on_training_data,
                           Scratch& scratch) override;

 private:
  const D& train_;
  const D* test_;
  std::uint64_t seed_;
  bool rounds_to_bf16_;
  models::Compression compression_;
  core::Gradients<M, D> gradients_;
  /// The buckets in which steps give their updates; empty if steps give whole updates.
  std::vector<core::Bucket> buckets_;
};

/// Makes the assignment that trains `model`. An Error says which option cannot work. The assignment
/// is the same on every machine that has the same data. Requires: `data` and `test` outlive the
/// assignment. `test` may be null.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Result<Assignment> assign_training(const M& model, const D& data,
                                                 std::type_identity_t<const D*> test,
                                                 const TrainOptions& options);

/// Trains `model`; blocks until the job has ended. `test` may be null. JobOptions says how to stop
/// the job, watch its progress and save the model. An Error says which option cannot work; then
/// nothing was started.
template <class M, class D>
requires models::Model<M, D>
[[nodiscard]] Result<Outcome> train(const M& model, const D& data,
                                    std::type_identity_t<const D*> test,
                                    const TrainOptions& options);

/// Returns the model's parameters at the end of the job, as one vector; empty if the job has lost
/// them (Outcome::model). Requires: `outcome` is that of a job that trained this model, with
/// options that may differ from these.
template <class M>
[[nodiscard]] std::vector<typename M::Scalar> parameters_of(const M& model, const TrainOptions&,
                                                            const Outcome& outcome) {
  using T = typename M::Scalar;
  if (outcome.model.empty()) return {};
  // The ranges divide the vector in their order. Where they divide it depends on the job's options.
  std::vector<T> parameters;
  for (const core::RangeState& state : outcome.model) {
    const auto values = state.value.template as<T>();
    parameters.insert(parameters.end(), values.begin(), values.end());
  }
  STARLING_CHECK(parameters.size() == models::total_size(model.parameters()));
  return parameters;
}

}  // namespace starling::actor

#include "starling/actor/train/train_impl.hpp"
