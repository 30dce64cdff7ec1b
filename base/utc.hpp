/// Times of day as people and programs read them: ISO 8601, UTC. Any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

namespace starling {

/// Microseconds since 1970.
[[nodiscard]] inline std::int64_t utc_now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

/// Prints microseconds since 1970 as "2026-01-31T23:59:59.042Z"; times out of range print the year
/// 0000.
[[nodiscard]] inline std::string print_utc(std::int64_t time_us) {
  constexpr std::int64_t second = 1'000'000;
  const std::int64_t below = (time_us % second + second) % second;
  const std::time_t seconds = time_us / second - (time_us % second < 0 ? 1 : 0);
  std::tm parts{};
  std::array<char, 32> day{};
  if (::gmtime_r(&seconds, &parts) == nullptr || parts.tm_year < -1900 || parts.tm_year > 8099 ||
      std::strftime(day.data(), day.size(), "%FT%T", &parts) == 0)
    return "0000-00-00T00:00:00.000Z";
  std::array<char, 8> milliseconds{};
  std::snprintf(milliseconds.data(), milliseconds.size(), ".%03dZ", static_cast<int>(below / 1000));
  return std::string{day.data()} + milliseconds.data();
}

}  // namespace starling
