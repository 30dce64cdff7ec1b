/// Internal to Transport: closes connections that this node has made if the peer sends more on them
/// than the answer to a handshake. No honest peer does so, but ZeroMQ would receive it all, because
/// ZeroMQ bounds the size of a message's parts but not their number. One thread.
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
  static constexpr std::chrono::milliseconds check_every{50};
  /// The most bytes that a peer may send on such a connection. The answers to both handshakes
  /// together are shorter.
  static constexpr std::uint64_t received_bytes_max = 4096;

  OutboundGuard();

  /// If the memory of this process has grown since the last check, closes such connections to
  /// addresses `tcp://HOST:PORT` for which `is_peer` returns true. Returns the number of
  /// connections that it closed. Call it every `check_every`: earlier calls do nothing.
  std::size_t check(const std::function<bool(const std::string& address)>& is_peer);

 private:
  /// The memory of this process at the last check, or less if it has shrunk since.
  std::size_t baseline_bytes_;
  Clock::time_point next_check_at_{};
};

}  // namespace starling::wire
