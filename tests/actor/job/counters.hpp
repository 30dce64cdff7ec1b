/// A model that counts updates, for jobs on several nodes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "starling/actor/train/train.hpp"
#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {

/// A model whose gradient is -1 everywhere. With sgd, a learning rate equal to the number of
/// workers, and batches of `full_batch` samples, each update adds 1 to every parameter.
struct Counters {
  using Scalar = float;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "counts", .shape = {8192}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch, std::span<float> g,
                  models::Pass&) const {
    std::ranges::fill(g, -1.0F);
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const models::Table&, models::Batch,
                           models::Pass&) const {
    return {{"loss", 1}};
  }
};

/// The number of samples in each step.
inline constexpr std::size_t full_batch = 10;

/// Returns options with which each update adds 1 to every parameter. `delay` is the mean of an
/// exponential delay of each step; 0: no delay.
inline TrainOptions counting_options(core::Mode mode, std::size_t workers, core::Step steps,
                                     const std::string& barrier, core::Time delay) {
  TrainOptions options;
  options.job.mode = mode;
  options.job.workers = workers;
  options.job.steps = steps;
  options.job.barrier = barrier::parse(barrier).value();
  if (delay > core::Time{}) options.job.delay = Distribution{laws::Exponential{delay}};
  options.job.compute_threads = 1;
  options.batch = full_batch;
  options.optimizer = models::Sgd{.lr = static_cast<float>(workers)};
  return options;
}

/// Expects that every range contains each update in its ledger exactly once, and no other.
inline void expect_exact_counts(std::span<const core::RangeState> model) {
  for (const auto& state : model) {
    // A worker that joined late has not made the steps before its first one, so its number of
    // updates is computed from its samples and not from its step.
    core::Step updates = 0;
    for (const auto& entry : state.ledger) updates += entry.samples / full_batch;
    for (const float count : state.value.as<float>())
      ASSERT_EQ(static_cast<core::Step>(count), updates) << "range " << state.range;
  }
}

}  // namespace starling::actor
