/// The options of a training job: all that describes it beside its model and data. A value; any
/// thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "starling/models/optimizer/optimizer.hpp"
#include "starling/models/optimizer/schedule.hpp"
#include "starling/models/order.hpp"

namespace starling::actor {

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

/// How `samples` samples are dealt to the workers, but for the seed.
[[nodiscard]] inline models::SampleOrder order_of(const TrainOptions& options,
                                                  std::size_t samples) {
  return {samples, options.job.workers, options.batch, 0};
}

/// Steps of one worker in one epoch over `samples` samples.
[[nodiscard]] inline core::Step steps_per_epoch(const TrainOptions& options, std::size_t samples) {
  return order_of(options, samples).steps_per_epoch();
}

/// Steps of one worker in `epochs` passes over `samples` samples: 1 at least, but none in 0 epochs.
/// Requires: epochs >= 0.
[[nodiscard]] inline core::Step steps_in(double epochs, const TrainOptions& options,
                                         std::size_t samples) {
  return order_of(options, samples).steps_in(epochs);
}

}  // namespace starling::actor
