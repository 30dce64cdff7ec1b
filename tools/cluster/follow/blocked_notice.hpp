/// Decides when a program that follows a job says that the job waits for nodes. No I/O and no
/// clock.
#pragma once

#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include "starling/tools/program/time_text.hpp"

namespace starling::program {

/// Not thread-safe.
class BlockedNotice {
 public:
  using Clock = std::chrono::steady_clock;
  /// While the job is blocked, the notice is repeated after this time.
  static constexpr std::chrono::seconds repeat_after{10};
  /// The least time from one notice to the next one with another reason, if nodes come and go. The
  /// notice that the job goes on is printed at once.
  static constexpr std::chrono::seconds interval_min{3};

  /// Takes the reason for which the job is blocked at `now`; `reason` is empty if the job is not
  /// blocked. Returns the text to print; nullopt if nothing is to be printed.
  [[nodiscard]] std::optional<std::string> update(const std::string& reason,
                                                  Clock::time_point now) {
    if (reason.empty()) {
      since_.reset();
      if (shown_.empty()) return std::nullopt;
      shown_.clear();
      shown_at_ = now;
      return "goes on";
    }
    if (!since_) since_ = now;
    const bool is_repeated = reason == shown_;
    if (shown_at_ && now < *shown_at_ + (is_repeated ? repeat_after : interval_min))
      return std::nullopt;
    shown_ = reason;
    shown_at_ = now;
    if (!is_repeated) return "waits: " + reason;
    return "has waited for " +
           time_text(std::round(std::chrono::duration<double>{now - *since_}.count())) + ": " +
           reason;
  }

 private:
  /// The time since which the job is blocked; nullopt if it is not blocked.
  std::optional<Clock::time_point> since_;
  /// The reason in the last notice, empty if that notice said that the job goes on; and the time of
  /// that notice.
  std::string shown_;
  std::optional<Clock::time_point> shown_at_;
};

}  // namespace starling::program
