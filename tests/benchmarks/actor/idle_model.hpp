/// Models that compute nothing, to see what the engine itself costs.
#pragma once

#include <algorithm>
#include <chrono>

#include "starling/models/model.hpp"

namespace starling::benchmarks {

/// Samples without content.
struct Nothing {
  std::size_t count;
  [[nodiscard]] std::size_t size() const { return count; }
};

/// `count` parameters whose gradient is 0, or keeps a processor busy for `busy` first.
struct IdleModel {
  using Scalar = float;

  std::size_t count;
  std::chrono::milliseconds busy{0};

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {count}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const Nothing&, models::Batch, std::span<float>,
                  models::Pass&) const {
    const auto until = std::chrono::steady_clock::now() + busy;
    while (std::chrono::steady_clock::now() < until) continue;
    return 0;
  }
  models::Metrics evaluate(std::span<const float>, const Nothing&, models::Batch,
                           models::Pass&) const {
    return {};
  }
};

}  // namespace starling::benchmarks
