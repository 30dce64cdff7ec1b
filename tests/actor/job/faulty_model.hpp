/// A model that throws or returns NaN as its options say, and jobs that train it. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {

/// Counts its gradients, and fails as its fields say.
struct FaultyModel {
  using Scalar = float;

  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  /// The first `throws_max` calls of gradient() throw.
  int throws_max = 0;
  /// From the call with this number on, counted from 0, the gradient is NaN.
  int nan_from = std::numeric_limits<int>::max();
  /// Called when the model is evaluated; may throw.
  std::function<void()> on_evaluate = [] {};

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {10}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 1.0F); }
  double gradient(std::span<const float>, const models::Table&, models::Batch, std::span<float> g,
                  models::ComputeContext&) const {
    const int call = (*calls)++;
    if (call < throws_max) throw std::runtime_error{"not in the mood"};
    std::ranges::fill(g, call >= nan_from ? std::numeric_limits<float>::quiet_NaN() : 0.5F);
    return 1;
  }
  models::Metrics evaluate(std::span<const float> w, const models::Table&, models::Batch,
                           models::ComputeContext&) const {
    on_evaluate();
    return {{"loss", w[0]}};
  }
};

/// Returns options of a job that runs for an hour unless it fails or is stopped.
inline TrainOptions endless_options() {
  TrainOptions options;
  options.job.workers = 3;
  options.job.barrier = barrier::parse("pssp:s=4,beta=2").value();
  options.job.time = std::chrono::hours{1};
  options.batch = 4;
  return options;
}

/// Runs each test in every mode.
class EveryMode : public testing::TestWithParam<core::Mode> {
 protected:
  TrainOptions options() const {
    TrainOptions options = endless_options();
    options.job.mode = GetParam();
    return options;
  }
  models::Table data_ = load("linear:d=5,n=60");
};

}  // namespace starling::actor
