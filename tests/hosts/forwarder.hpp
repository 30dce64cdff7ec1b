/// A network between two addresses that misbehaves on command: takes connections at one, and passes
/// the bytes on to the other, late, slowly, damaged, in pieces or not at all. For tests of anything
/// that runs over TCP, so nothing is lost or out of order within a connection that stands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>

namespace starling::hosts {

/// How it treats the bytes that it passes on. By default it changes nothing.
struct Weather {
  /// Each piece comes later by `delay`, and by up to `jitter` more; order is kept.
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds jitter{0};
  /// In each direction of each connection; 0: as fast as it goes.
  std::size_t bytes_per_s = 0;
  /// Connections stand, and nothing passes.
  bool silent = false;
  /// Connections are broken, and new ones refused.
  bool cut = false;
  /// The share of the pieces (up to 16 KiB) with which their connection breaks.
  double breaking = 0;
  /// The share of the pieces in which one bit is turned.
  double damaging = 0;
};

/// Thread-safe. IPv4 on the loopback.
class Forwarder {
 public:
  /// Takes connections at a free port.
  explicit Forwarder(std::uint64_t seed = 1);
  ~Forwarder();

  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Sets the port that it passes on to. Before that, it takes no connections.
  void lead_to(std::uint16_t port) { target_ = port; }
  [[nodiscard]] std::uint16_t target() const noexcept { return target_; }
  /// Applies to all bytes that come after this has returned.
  void set(const Weather& weather);
  /// Breaks all connections that stand now; new connections work as before.
  void break_all() { break_all_ = true; }

  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  /// Connections that were refused, as in a cut.
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }
  [[nodiscard]] std::uint64_t broken() const noexcept { return broken_; }
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  class Relay;
  void run();
  [[nodiscard]] Weather look();

  std::uint16_t port_ = 0;
  int listening_ = -1;
  std::atomic<std::uint16_t> target_ = 0;
  std::mutex mutex_;
  Weather weather_;
  /// How often it has changed, and how often the thread has seen that.
  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<std::uint64_t> seen_ = 0;
  std::atomic<bool> break_all_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> taken_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> broken_ = 0;
  std::atomic<std::uint64_t> damaged_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::mt19937_64 random_;
  std::thread thread_;
};

/// A port of the loopback that was free just now.
[[nodiscard]] std::uint16_t free_port();

}  // namespace starling::hosts
