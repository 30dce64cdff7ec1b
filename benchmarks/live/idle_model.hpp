/// Models that compute nothing, to see what the engine itself costs.
#pragma once

#include <chrono>
#include <thread>

#include "starling/models/model.hpp"

namespace starling::benchmarks {

/// Samples without content.
struct Nothing {
  std::size_t count;
  [[nodiscard]] std::size_t size() const { return count; }
};

/// `parameters` parameters whose gradient is 0, or is computed for `pause` by sleeping.
struct IdleModel {
  using Scalar = float;

  std::size_t count;
  std::chrono::milliseconds pause{0};

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {count}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const Nothing&, models::Batch, std::span<float>,
                  models::Pass&) const {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    return 0;
  }
  models::Metrics evaluate(std::span<const float>, const Nothing&, models::Batch,
                           models::Pass&) const {
    return {};
  }
};

}  // namespace starling::benchmarks
