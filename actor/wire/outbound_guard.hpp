/// Internal to Transport: closes connections that this node has made and by which the peer sends
/// more than an answer to a handshake. No honest peer does so, but ZeroMQ would receive it, because
/// ZeroMQ bounds the size of a message's parts and not their number. One thread.
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
  /// The answers to both handshakes together are shorter.
  static constexpr std::uint64_t received_bytes_max = 4096;

  OutboundGuard();

  /// Closes such connections to addresses `tcp://HOST:PORT` for which `is_ours` returns true, if
  /// the memory of this process has grown since the last look. To be called every `look_every`.
  /// Returns how many connections it closed.
  std::size_t look(const std::function<bool(const std::string& address)>& is_ours);

 private:
  std::size_t calm_bytes_;
  Clock::time_point next_look_{};
};

}  // namespace starling::wire
