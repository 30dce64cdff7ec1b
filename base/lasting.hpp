/// Durations from computed numbers of nanoseconds.
#pragma once

#include <chrono>
#include <cmath>

namespace starling {

/// Returns the duration nearest to `ns`, at most a year, so that sums of several stay in range.
[[nodiscard]] inline std::chrono::nanoseconds lasting(double ns) {
  constexpr std::chrono::nanoseconds longest = std::chrono::hours{24 * 365};
  return ns < static_cast<double>(longest.count()) ? std::chrono::nanoseconds{std::llround(ns)}
                                                   : longest;
}

}  // namespace starling
