/// Waits for other threads and programs. For tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <thread>

#include "tests/sanitized.hpp"

namespace starling {

/// The limit for waits that take milliseconds on an idle machine. It is long because tests run
/// beside others, and because sanitizers make everything slower.
inline constexpr std::chrono::seconds wait_max{sanitized ? 240 : 60};

/// Calls `holds()` every 1 to 10 ms until it returns true. Returns false if it does not within
/// `limit`.
template <std::predicate Condition>
[[nodiscard]] bool wait_until(Condition&& holds, std::chrono::milliseconds limit = wait_max) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + limit;
  std::chrono::milliseconds pause{1};
  while (!holds()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds{10});
  }
  return true;
}

}  // namespace starling
