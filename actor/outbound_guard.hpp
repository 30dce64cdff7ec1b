/// Internal to Transport: closes outbound connections (those that this node has made) on which the
/// remote node sends more than the answers to a handshake. No correct node does so. ZeroMQ would
/// receive and keep all these bytes: it limits the size of each part of a message, but not the
/// number of parts. Not thread-safe.
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
  /// The most bytes that a remote node may send on an outbound connection. A correct one sends only
  /// the ZMTP greeting and the answers of the CURVE handshake, which are shorter.
  static constexpr std::uint64_t received_bytes_max = 4096;

  OutboundGuard();

  /// If the resident memory of this process is 16 MiB or more above its minimum since the
  /// connections were last examined, closes the connections that have received more than
  /// `received_bytes_max` bytes and for whose remote address, `tcp://IP:PORT`, `is_remote_node`
  /// returns true. Returns the number of connections that it closed. Call it every `check_every`:
  /// earlier calls do nothing.
  std::size_t check(const std::function<bool(const std::string& address)>& is_remote_node);

 private:
  /// The smallest resident memory of this process since the connections were last examined.
  std::size_t baseline_bytes_;
  Clock::time_point next_check_at_{};
};

}  // namespace starling::wire
