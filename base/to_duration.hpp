/// The longest durations, and the conversion of a computed number of nanoseconds to a duration. Any
/// thread.
#pragma once

#include <chrono>
#include <cmath>

namespace starling {

/// The longest duration in a text (parse_duration()), about 285 years: a time that is this long
/// after any present time does not overflow.
inline constexpr std::chrono::nanoseconds parsed_duration_max{9'000'000'000'000'000'000};

/// The longest duration that to_duration() returns: sums of several such durations do not overflow.
inline constexpr std::chrono::nanoseconds computed_duration_max = std::chrono::hours{24 * 365};

/// Returns the duration nearest to `ns` nanoseconds, at most `computed_duration_max`.
[[nodiscard]] inline std::chrono::nanoseconds to_duration(double ns) {
  return ns < static_cast<double>(computed_duration_max.count())
             ? std::chrono::nanoseconds{std::llround(ns)}
             : computed_duration_max;
}

}  // namespace starling
