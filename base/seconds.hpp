/// Converts durations to numbers of seconds, for statistics and formulas.
#pragma once

#include <chrono>

namespace starling {

template <class Rep, class Period>
constexpr double in_seconds(std::chrono::duration<Rep, Period> duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Returns the seconds that have passed since `start` on its clock.
template <class Clock, class Duration>
double seconds_since(std::chrono::time_point<Clock, Duration> start) {
  return in_seconds(Clock::now() - start);
}

}  // namespace starling
