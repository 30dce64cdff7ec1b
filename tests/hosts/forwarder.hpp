/// A TCP proxy that injects faults: it accepts connections at one port, and forwards the bytes to
/// another late, slowly, corrupted or not at all. Within a connection, no bytes are lost or
/// reordered, because TCP guarantees that. For tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>

namespace starling::hosts {

/// The faults that a Forwarder injects; by default none.
struct LinkFaults {
  /// Each piece is delayed by `delay`, and by a random time up to `jitter`; the order is kept.
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds jitter{0};
  /// The limit for each direction of each connection; 0: no limit.
  std::size_t bytes_per_s = 0;
  /// Connections stay open, but no bytes pass.
  bool silent = false;
  /// Connections are reset, and new ones refused.
  bool cut = false;
  /// The share of the pieces (of up to 16 KiB) at which the connection is reset.
  double breaking = 0;
  /// The share of the pieces in which one bit is flipped.
  double corrupted_share = 0;
};

/// Thread-safe. IPv4 on the loopback.
class Forwarder {
 public:
  /// Listens at a free port.
  explicit Forwarder(std::uint64_t seed = 1);
  ~Forwarder();

  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Sets the port that it forwards to. Before that, it accepts no connections.
  void forward_to(std::uint16_t port) { target_ = port; }
  [[nodiscard]] std::uint16_t target() const noexcept { return target_; }
  /// Sets the faults for all bytes that arrive after this has returned.
  void set(const LinkFaults& faults);
  /// Resets all connections that are open now. New ones are accepted.
  void break_all() { break_all_ = true; }

  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }
  /// The number of connections that were refused, such as during a cut.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  [[nodiscard]] std::uint64_t broken() const noexcept { return broken_; }
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  class Relay;
  void run();
  [[nodiscard]] LinkFaults next_faults();

  std::uint16_t port_ = 0;
  int listener_socket_ = -1;
  std::atomic<std::uint16_t> target_ = 0;
  std::mutex mutex_;
  LinkFaults faults_;
  /// How often the faults were changed, and how many of these changes the thread has applied.
  std::atomic<std::uint64_t> fault_changes_ = 0;
  std::atomic<std::uint64_t> applied_changes_ = 0;
  std::atomic<bool> break_all_ = false;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> broken_ = 0;
  std::atomic<std::uint64_t> damaged_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::mt19937_64 random_;
  std::thread thread_;
};

/// Returns a port of the loopback that is free now.
[[nodiscard]] std::uint16_t free_port();

}  // namespace starling::hosts
