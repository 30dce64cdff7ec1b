/// How much of its push-sum weight a worker sends to another one. Pure function.
#pragma once

#include <algorithm>

namespace starling::core {

/// Returns the weight that a worker sends after a step: half of its weight, or less, so that
/// `weight_min` is left; 0 if the weight to send would be less than an eighth of `weight_min`.
[[nodiscard]] constexpr double push_weight(double weight, double weight_min) {
  const double sent = std::min(weight / 2, weight - weight_min);
  return sent < weight_min / 8 ? 0 : sent;
}

}  // namespace starling::core
