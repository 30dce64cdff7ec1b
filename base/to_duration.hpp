/// Converts a computed number of nanoseconds to a duration.
#pragma once

#include <chrono>
#include <cmath>

namespace starling {

/// Returns the duration nearest to `ns` nanoseconds, at most 365 days, so that sums of several
/// durations do not overflow.
[[nodiscard]] inline std::chrono::nanoseconds to_duration(double ns) {
  constexpr std::chrono::nanoseconds duration_max = std::chrono::hours{24 * 365};
  return ns < static_cast<double>(duration_max.count()) ? std::chrono::nanoseconds{std::llround(ns)}
                                                        : duration_max;
}

}  // namespace starling
