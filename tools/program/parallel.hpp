/// Runs independent pieces of work on several threads, and estimates how long they still take.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace starling::program {

/// The progress of all pieces together.
struct OverallProgress {
  /// The time that the pieces have run, divided by their estimated total time, from 0 to 1. While
  /// no time can be estimated: the mean share of a piece that is done.
  double share = 0;
  /// Estimated seconds until all pieces are done; absent until 1 % of some piece is done.
  std::optional<double> remaining_s = std::nullopt;
};

/// Records how much of each piece is done, and estimates how long the rest takes. Thread-safe.
class ProgressEstimator {
 public:
  using Clock = std::chrono::steady_clock;

  /// The kind of a piece. Pieces with the same `id` take about the same time.
  struct Kind {
    std::size_t id = 0;
    /// The expected time of a piece relative to pieces of other kinds, in any unit. Used while no
    /// piece of this kind has come far enough to estimate its time.
    double cost = 1;
  };

  /// `kinds` has the kind of each piece. At most `threads` pieces run at the same time.
  ProgressEstimator(std::vector<Kind> kinds, std::size_t threads);

  /// Starts the clock of a piece, which is an index in `kinds`.
  void begin(std::size_t piece, Clock::time_point now = Clock::now());
  /// Sets the share of a piece that is done, from 0 to 1; 1 stops its clock. Requires: begin() was
  /// called for the piece.
  void set(std::size_t piece, double share, Clock::time_point now = Clock::now());

  [[nodiscard]] OverallProgress progress(Clock::time_point now = Clock::now()) const;

 private:
  struct Piece {
    Kind kind;
    double share = 0;
    std::optional<Clock::time_point> started_at{};
    std::optional<Clock::time_point> ended_at{};
  };

  /// Returns how long a piece has run so far, in seconds.
  [[nodiscard]] static double elapsed_s(const Piece& piece, Clock::time_point now);
  /// Estimates how long a piece takes from begin to end, in seconds: its elapsed time divided by
  /// the share that is done. Returns nullopt if less than 1 % is done.
  [[nodiscard]] static std::optional<double> estimated_total_s(const Piece& piece,
                                                               Clock::time_point now);

  mutable std::mutex mutex_;
  std::vector<Piece> pieces_;
  std::size_t threads_;
};

/// Calls `work(i)` for every i below `count`, on up to `threads` threads, and `show_progress()`
/// about ten times a second on the caller's thread. Returns once all calls have returned. If a call
/// of `work` throws, no further one is begun, and the exception is rethrown once the others have
/// returned. Requires: threads > 0.
void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& show_progress);

}  // namespace starling::program
