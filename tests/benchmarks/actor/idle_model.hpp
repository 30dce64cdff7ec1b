/// A model that computes nothing, to measure the cost of the engine alone.
#pragma once

#include <algorithm>
#include <chrono>

#include "starling/models/model.hpp"

namespace starling::benchmarks {

/// A data set of samples without content.
struct EmptyData {
  std::size_t count;
  [[nodiscard]] std::size_t size() const { return count; }
};

/// A model with `count` parameters and a gradient of 0, whose computation takes `gradient_time`.
struct IdleModel {
  using Scalar = float;

  std::size_t count;
  std::chrono::milliseconds gradient_time{0};

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {count}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const EmptyData&, models::Batch, std::span<float>,
                  models::ComputeContext&) const {
    const auto end = std::chrono::steady_clock::now() + gradient_time;
    while (std::chrono::steady_clock::now() < end) continue;
    return 0;
  }
  models::Metrics evaluate(std::span<const float>, const EmptyData&, models::Batch,
                           models::ComputeContext&) const {
    return {};
  }
};

}  // namespace starling::benchmarks
