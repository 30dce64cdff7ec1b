/// Internal to Transport: breaks connections that we have made and by which the peer sends more
/// than an answer to a handshake. No honest peer does, but ZeroMQ would take it: it bounds the size
/// of a message's parts, and not their number. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace starling::wire {

class OutboundGuard {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds look_every{50};
  /// Both handshakes together are shorter.
  static constexpr std::uint64_t received_bytes_max = 4096;

  OutboundGuard();

  /// Breaks such connections to addresses `tcp://HOST:PORT` of which `is_ours` holds, where this
  /// process has grown since the last look. To be called every `look_every`. Returns how many it
  /// broke.
  std::size_t look(const std::function<bool(const std::string& address)>& is_ours);

 private:
  std::size_t calm_bytes_;
  Clock::time_point next_look_{};
};

}  // namespace starling::wire
