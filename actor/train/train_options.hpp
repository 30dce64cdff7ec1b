/// The options of a training job: all of its description except the model and the data. A plain
/// value; thread-safe to read.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/compression.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::actor {

struct TrainOptions {
  JobOptions job;
  models::Optimizer optimizer = models::Sgd{};
  models::Schedule schedule = {};
  /// How each worker clips each of its gradients.
  models::Clip clip = {};
  /// Which part of each clipped gradient a worker sends.
  models::Compression compression = {};
  /// The weight decay of the parameters that have `decay` set.
  double l2 = 0;
  /// The number of samples in one step of one worker; never more than the worker's share of the
  /// data. If `dynamic_batches`, the number of samples in one step of all workers together, at
  /// least one for each worker: the workers' batches are sized by their speeds
  /// (docs/design/0019-dynamic-batches.md).
  std::size_t batch = 64;
  bool dynamic_batches = false;
  /// The number of passes over the training data. If set, it replaces job.steps: it says at which
  /// step a worker ends, also if the workers change while the job runs.
  std::optional<double> epochs = std::nullopt;
  /// With `epochs`: no worker makes more steps than this.
  core::Step steps_max = barrier::unlimited;
  /// The saved states from which the job goes on, one for each range. Empty: the job makes a new
  /// model.
  std::vector<core::RangeState> resume = {};
};

/// Returns an Error if the optimizer, schedule, clip or compression has an option that its parse
/// function refuses, for example a value out of range, or if the weight decay is invalid.
[[nodiscard]] inline Result<void> check_rules(const TrainOptions& options) {
  if (auto valid = models::parse_optimizer(models::print(options.optimizer)); !valid)
    return std::move(valid).error();
  if (auto valid = models::parse_schedule(models::print(options.schedule)); !valid)
    return std::move(valid).error();
  if (auto valid = models::parse_clip(models::print(options.clip)); !valid)
    return std::move(valid).error();
  if (auto valid = models::parse_compression(models::print(options.compression)); !valid)
    return std::move(valid).error();
  if (!(std::isfinite(options.l2) && options.l2 >= 0))
    return Error{"l2=" + print_number(options.l2) + ": must be a finite number >= 0"};
  return {};
}

/// Returns the setting `batch` as text: "32", or "dynamic:total=512".
[[nodiscard]] inline std::string print_batch(const TrainOptions& options) {
  return (options.dynamic_batches ? "dynamic:total=" : "") + std::to_string(options.batch);
}

/// Returns the order in which the workers process `samples` samples. Requires:
/// check_deals(options.job.former_deals, samples).
[[nodiscard]] inline models::SampleOrder order_of(const TrainOptions& options,
                                                  std::size_t samples) {
  return models::first_order(samples, options.job.workers, options.batch, options.dynamic_batches,
                             options.job.seed, options.job.former_deals);
}

/// Returns the number of steps that one worker makes in one pass over `samples` samples.
[[nodiscard]] inline core::Step steps_per_epoch(const TrainOptions& options, std::size_t samples) {
  return order_of(options, samples).steps_per_epoch();
}

/// Returns the number of steps that one worker makes in `epochs` passes over `samples` samples: at
/// least 1, or 0 for 0 passes. Requires: epochs >= 0.
[[nodiscard]] inline core::Step steps_in_epochs(double epochs, const TrainOptions& options,
                                                std::size_t samples) {
  return order_of(options, samples).steps_in_epochs(epochs);
}

}  // namespace starling::actor
