/// Runs independent pieces of work on several threads while the caller's thread reports their
/// progress. Blocking.
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
  /// The share of the total time that has passed, from 0 to 1. Before any time can be estimated:
  /// the share of the pieces that is done.
  double share = 0;
  /// Estimated seconds until all pieces are done; absent until a piece has come far enough for an
  /// estimate.
  std::optional<double> remaining_s = std::nullopt;
};

/// Keeps how much of each piece is done, and estimates how long the rest takes. Any thread.
class ProgressEstimator {
 public:
  using Clock = std::chrono::steady_clock;

  /// Pieces of one kind take about the same time.
  struct Kind {
    std::size_t id = 0;
    /// The expected time of a piece relative to pieces of other kinds. Used until the time of a
    /// piece of this kind was measured.
    double cost = 1;
  };

  /// At most `threads` pieces run at the same time.
  ProgressEstimator(std::vector<Kind> kinds, std::size_t threads);

  void begin(std::size_t piece, Clock::time_point now = Clock::now());
  /// Sets the share of a piece that is done, from 0 to 1; 1 ends it. Requires: begin() was called.
  void set(std::size_t piece, double share, Clock::time_point now = Clock::now());

  [[nodiscard]] PieceProgress progress(Clock::time_point now = Clock::now()) const;

 private:
  struct Piece {
    Kind kind;
    double share = 0;
    std::optional<Clock::time_point> started_at{};
    std::optional<Clock::time_point> ended_at{};
  };

  /// Returns how long a piece has run, in seconds.
  [[nodiscard]] static double spent_s(const Piece& piece, Clock::time_point now);
  /// Estimates the whole time of a piece, in seconds, from what is done of it and how long that
  /// took. Nothing if too little is done.
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
