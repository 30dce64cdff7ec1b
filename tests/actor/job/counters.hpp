/// Models that count samples, for jobs on several nodes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "starling/actor/train/train.hpp"
#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {

/// A model whose gradient is everywhere minus the number of samples. In a job of
/// counting_assignment(), each update adds this number to every parameter.
struct Counters {
  using Scalar = float;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "counts", .shape = {8192}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch batch,
                  std::span<float> g, models::ComputeContext&) const {
    std::ranges::fill(g, -static_cast<float>(batch.size()));
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const models::Table&, models::Batch,
                           models::ComputeContext&) const {
    return {{"loss", 1}};
  }
};

/// A model with a parameter for each sample. In a job of counting_assignment(), the parameters say
/// how often each sample was taken.
struct SampleCounters : Counters {
  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "taken", .shape = {1200}}};
  }
  double gradient(std::span<const float>, const models::Table&, models::Batch batch,
                  std::span<float> g, models::ComputeContext&) const {
    std::ranges::fill(g, 0.0F);
    for (const std::uint32_t sample : batch) g[sample] -= 1;
    return 1;
  }
};

/// The number of samples in a full batch.
inline constexpr std::size_t full_batch = 10;

/// Returns options for counting_assignment(). `delay` is the mean of an exponential delay of each
/// step; 0: no delay.
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
  return options;
}

/// Returns a job in which every update has the weight 1, however many workers there are.
template <class Model = Counters>
Assignment counting_assignment(const models::Table& data, const TrainOptions& options) {
  Assignment assignment = assign_training(Model{}, data, nullptr, options).value();
  assignment.applier = core::merge_applier<float>(
      [](const core::MergeTarget&, std::span<float> value, std::span<const float> update) {
        for (std::size_t i = 0; i < value.size(); ++i) value[i] -= update[i];
      });
  return assignment;
}

/// Expects that every range contains each update in its ledger exactly once, and no other.
inline void expect_exact_counts(std::span<const core::RangeState> model) {
  for (const auto& state : model) {
    std::uint64_t samples = 0;
    for (const auto& entry : state.ledger) samples += entry.samples;
    for (const float count : state.value.as<float>())
      ASSERT_EQ(static_cast<std::uint64_t>(count), samples) << "range " << state.range;
  }
}

}  // namespace starling::actor
