/// Reads the clock and prints times as ISO 8601 in UTC. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

namespace starling {

/// Returns the current time in microseconds since 1970.
[[nodiscard]] inline std::int64_t utc_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

/// Prints microseconds since 1970 as "2026-01-31T23:59:59.042Z". Times before the year 0 or after
/// 9999 print as "0000-00-00T00:00:00.000Z".
[[nodiscard]] inline std::string print_utc(std::int64_t time_us) {
  constexpr std::int64_t us_per_second = 1'000'000;
  const std::int64_t us_in_second = (time_us % us_per_second + us_per_second) % us_per_second;
  const std::time_t seconds = time_us / us_per_second - (time_us % us_per_second < 0 ? 1 : 0);
  std::tm parts{};
  std::array<char, 32> date_time{};
  if (::gmtime_r(&seconds, &parts) == nullptr || parts.tm_year < -1900 || parts.tm_year > 8099 ||
      std::strftime(date_time.data(), date_time.size(), "%FT%T", &parts) == 0)
    return "0000-00-00T00:00:00.000Z";
  std::array<char, 8> milliseconds{};
  std::snprintf(milliseconds.data(), milliseconds.size(), ".%03dZ",
                static_cast<int>(us_in_second / 1000));
  return std::string{date_time.data()} + milliseconds.data();
}

}  // namespace starling
