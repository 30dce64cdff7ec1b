/// Independent pieces of work on some threads, with their progress told on one. Blocking.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

namespace starling::app {

/// How much of each piece is done, from 0 to 1. Any thread.
class Shares {
 public:
  explicit Shares(std::size_t count) : parts_(count) {}

  void set(std::size_t piece, double share) noexcept { parts_[piece] = share; }
  /// Of all pieces together.
  [[nodiscard]] double mean() const noexcept;

 private:
  std::vector<std::atomic<double>> parts_;
};

/// Calls `work(i)` for every i below `count`, on up to `threads` threads, and `watch()` about ten
/// times a second on the caller's. What a piece throws is thrown again, once the pieces that were
/// begun have ended; no further ones are begun. Requires: threads > 0.
void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& watch);

}  // namespace starling::app
