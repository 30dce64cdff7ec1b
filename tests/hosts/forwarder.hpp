/// A TCP proxy that injects faults: it accepts connections at one port, and forwards their bytes to
/// another port late, slowly, corrupted or not at all. It keeps TCP's guarantee that no bytes of a
/// connection are lost or reordered while the connection is open. For tests.
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
  /// Each piece (up to 16 KiB that were received together) is delayed by `delay` and by a random
  /// time up to `jitter`. Pieces keep their order.
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds jitter{0};
  /// The bandwidth of each direction of each connection; 0: no limit.
  std::size_t bytes_per_s = 0;
  /// Connections stay open, but no bytes pass.
  bool silent = false;
  /// Connections are reset, and new ones refused.
  bool cut = false;
  /// The share of pieces that are not forwarded because the connection is reset instead.
  double breaking = 0;
  /// The share of pieces in which one bit is flipped.
  double corrupted_share = 0;
};

/// Thread-safe. Uses IPv4 on the loopback.
class Forwarder {
 public:
  /// Listens at a free port.
  explicit Forwarder(std::uint64_t seed = 1);
  ~Forwarder();

  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Sets the port to which the bytes are forwarded. Before this call, no connection is accepted.
  void forward_to(std::uint16_t port) { target_ = port; }
  [[nodiscard]] std::uint16_t target() const noexcept { return target_; }
  /// Replaces the faults. They apply to all bytes that arrive after this function has returned.
  void set(const LinkFaults& faults);
  /// Resets all connections that are open now. New ones are accepted.
  void break_all() { break_all_ = true; }

  /// The number of connections that were accepted and forwarded.
  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }
  /// The number of connections that were reset at once: because of LinkFaults::cut, or because the
  /// connection to target() failed.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  /// The number of open connections that were reset because of a fault or of break_all().
  [[nodiscard]] std::uint64_t broken() const noexcept { return broken_; }
  /// The number of pieces in which a bit was flipped.
  [[nodiscard]] std::uint64_t corrupted_pieces() const noexcept { return corrupted_pieces_; }
  /// The number of bytes that were received for forwarding, in both directions.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  class Relay;
  /// The loop of the thread.
  void run();
  /// Called by the thread. Returns the current faults, and marks them as applied.
  [[nodiscard]] LinkFaults apply_faults();

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
  std::atomic<std::uint64_t> corrupted_pieces_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::mt19937_64 random_;
  std::thread thread_;
};

/// Returns a port of the loopback that is free now.
[[nodiscard]] std::uint16_t free_port();

}  // namespace starling::hosts
