/// Internal to Transport: breaks connections that bring messages without an end. ZeroMQ bounds the
/// parts of a message, but neither how many a message has nor what they take up together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace starling::wire {

/// Watches while this process grows, and costs nothing else. One thread.
class Intake {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds look_every{1'000};

  /// `address`: tcp://HOST:PORT, listened at. More than `unfinished_bytes_max` of messages that
  /// have not come to their end, of all connections together, costs the one its place that brought
  /// most.
  Intake(const std::string& address, std::size_t unfinished_bytes_max);

  /// Whether it wants to know who delivers.
  [[nodiscard]] bool is_watching() const noexcept { return is_watching_; }
  /// A whole message has come through that descriptor; what came before it has been taken.
  void delivered(int descriptor) { delivered_.insert(descriptor); }

  /// Call every so often. How many connections it broke.
  std::size_t look();

 private:
  struct Line {
    /// When something was delivered last, and now; as the system counts.
    std::uint64_t at_delivery = 0;
    std::uint64_t received = 0;
    bool is_there = true;
    [[nodiscard]] std::uint64_t unfinished() const { return received - at_delivery; }
  };

  void update(int descriptor);
  std::size_t break_longest();

  const int port_;
  const std::size_t unfinished_bytes_max_;
  std::size_t calm_bytes_;
  bool is_watching_ = false;
  Clock::time_point next_look_{};
  Clock::time_point watches_until_{};
  std::unordered_set<int> delivered_;
  std::unordered_map<int, Line> lines_;
};

}  // namespace starling::wire
