/// Runs independent pieces of work on some threads, and reports their progress on one. Blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace starling::program {

/// The progress of all pieces together.
struct PieceProgress {
  /// The done share of the time that all take; of the pieces as long as no time is known.
  double share = 0;
  /// Seconds until all are done; absent before a piece has come far enough for an estimate.
  std::optional<double> left_s = std::nullopt;
};

/// Keeps how much of each piece is done, and estimates how long the rest takes. Any thread.
class PieceWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Pieces of one kind take about the same time.
  struct Kind {
    std::size_t id = 0;
    /// The time that a piece is expected to take relative to pieces of other kinds, until a piece
    /// of its own kind has shown it.
    double cost = 1;
  };

  /// At most `threads` pieces are at work at a time.
  PieceWatch(std::vector<Kind> kinds, std::size_t threads);

  void begin(std::size_t piece, Clock::time_point now = Clock::now());
  /// Sets the share of a piece that is done, from 0 to 1; 1 ends it. Requires: begin() was called.
  void set(std::size_t piece, double share, Clock::time_point now = Clock::now());

  [[nodiscard]] PieceProgress progress(Clock::time_point now = Clock::now()) const;

 private:
  struct Piece {
    Kind kind;
    double share = 0;
    std::optional<Clock::time_point> began{};
    std::optional<Clock::time_point> ended{};
  };

  /// Returns how long a piece has been at work, in seconds.
  [[nodiscard]] static double spent_s(const Piece& piece, Clock::time_point now);
  /// Estimates how long a piece takes as a whole, in seconds, from that piece alone.
  [[nodiscard]] static std::optional<double> whole_s(const Piece& piece, Clock::time_point now);

  mutable std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::size_t threads_;
};

/// Calls `work(i)` for every i below `count`, on up to `threads` threads, and `watch()` about ten
/// times a second on the caller's thread. If a piece throws, no further pieces are begun, and the
/// exception is thrown again once the pieces that were begun have ended. Requires: threads > 0.
void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& watch);

}  // namespace starling::program
