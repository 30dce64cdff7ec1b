/// Waiting for what other threads and programs do. For tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <thread>

namespace starling {

/// A limit for what takes milliseconds on an idle machine: tests run beside others, and sanitizers
/// make everything slower.
#ifdef STARLING_SANITIZED
inline constexpr std::chrono::seconds wait_max{240};
#else
inline constexpr std::chrono::seconds wait_max{60};
#endif

/// Waits until a condition holds, and asks for it every few milliseconds. Returns false where it
/// does not hold within the limit.
template <std::predicate Condition>
[[nodiscard]] bool wait_until(Condition&& holds, std::chrono::milliseconds limit = wait_max) {
  using Clock = std::chrono::steady_clock;
  const auto give_up = Clock::now() + limit;
  std::chrono::milliseconds pause{1};
  while (!holds()) {
    if (Clock::now() >= give_up) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds{10});
  }
  return true;
}

}  // namespace starling
