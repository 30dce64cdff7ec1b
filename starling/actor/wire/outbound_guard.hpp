/// Internal to Transport: breaks connections that we have made and that bring more than an answer
/// to a handshake. Nobody sends anything else by them, but ZeroMQ would take it: it bounds the
/// parts of a message, and not how many a message has. One thread.
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

  /// Looks at the connections to addresses that are ours to connect to, `tcp://HOST:PORT`, where
  /// this process has grown since the last look. Call every so often; how many it broke.
  std::size_t look(const std::function<bool(const std::string& address)>& is_ours);

 private:
  std::size_t calm_bytes_;
  Clock::time_point next_look_{};
};

}  // namespace starling::wire
