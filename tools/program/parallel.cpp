#include "starling/tools/program/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "starling/base/check.hpp"
#include "starling/base/seconds.hpp"

namespace starling::program {
namespace {

/// Hands out the pieces to the threads and waits until the threads have ended.
class ThreadTeam {
 public:
  ThreadTeam(std::size_t count, std::size_t threads) : count_(count), running_(threads) {}

  /// Each thread calls this once. Calls `work` with one piece after another, until none is left or
  /// one has thrown.
  void run(const std::function<void(std::size_t)>& work) noexcept {
    try {
      for (std::size_t i = 0; (i = next_++) < count_;) work(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock{mutex_};
      if (!exception_) exception_ = std::current_exception();
    }
    const std::lock_guard lock{mutex_};
    if (--running_ == 0) ended_.notify_all();
  }

  /// Waits up to 100 ms; returns true once all threads have ended.
  bool wait() {
    std::unique_lock lock{mutex_};
    return ended_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return running_ == 0; });
  }

  /// Throws the first exception of a piece, if there is one.
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  const std::size_t count_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  /// The number of threads that have not ended.
  std::size_t running_;
  std::exception_ptr exception_;
};

}  // namespace

ProgressEstimator::ProgressEstimator(std::vector<Kind> kinds, std::size_t threads)
    : threads_(std::max<std::size_t>(1, std::min(threads, kinds.size()))) {
  for (const Kind& kind : kinds) pieces_.push_back({.kind = kind});
}

void ProgressEstimator::begin(std::size_t piece, Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  pieces_.at(piece).started_at = now;
}

void ProgressEstimator::set(std::size_t piece, double share, Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  pieces_.at(piece).share = share;
  if (share >= 1) pieces_[piece].ended_at = now;
}

double ProgressEstimator::elapsed_s(const Piece& piece, Clock::time_point now) {
  if (!piece.started_at) return 0;
  return in_seconds(piece.ended_at.value_or(now) - *piece.started_at);
}

std::optional<double> ProgressEstimator::estimated_total_s(const Piece& piece,
                                                           Clock::time_point now) {
  constexpr double share_min = 0.01;
  if (piece.share < share_min) return std::nullopt;
  return elapsed_s(piece, now) / std::min(1.0, piece.share);
}

OverallProgress ProgressEstimator::progress(Clock::time_point now) const {
  const std::lock_guard lock{mutex_};
  /// Sums over the pieces whose time can be estimated.
  struct Estimates {
    double total_s = 0;
    double cost = 0;
  };
  Estimates all_kinds;
  std::map<std::size_t, Estimates> estimates_by_kind;
  double share_sum = 0;
  for (const Piece& piece : pieces_) {
    share_sum += piece.share;
    const auto total_s = estimated_total_s(piece, now);
    if (!total_s) continue;
    for (Estimates* sums : {&all_kinds, &estimates_by_kind[piece.kind.id]})
      *sums = {sums->total_s + *total_s, sums->cost + piece.kind.cost};
  }
  if (pieces_.empty()) return {1, 0};
  if (all_kinds.cost <= 0) return {share_sum / static_cast<double>(pieces_.size()), std::nullopt};
  double spent_s = 0;
  double left_s = 0;
  double longest_left_s = 0;
  for (const Piece& piece : pieces_) {
    const auto kind = estimates_by_kind.find(piece.kind.id);
    const Estimates& similar = kind == estimates_by_kind.end() ? all_kinds : kind->second;
    const double total_s =
        estimated_total_s(piece, now).value_or(similar.total_s / similar.cost * piece.kind.cost);
    const double piece_left_s = piece.ended_at ? 0 : std::max(0.0, total_s - elapsed_s(piece, now));
    spent_s += elapsed_s(piece, now);
    left_s += piece_left_s;
    longest_left_s = std::max(longest_left_s, piece_left_s);
  }
  const double share = spent_s + left_s > 0 ? spent_s / (spent_s + left_s) : 1;
  return {share, std::max(longest_left_s, left_s / static_cast<double>(threads_))};
}

void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& show_progress) {
  STARLING_CHECK(threads > 0);
  const std::size_t thread_count = std::min(threads, count);
  if (thread_count == 0) return;
  ThreadTeam team{count, thread_count};
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < thread_count; ++i) workers.emplace_back([&] { team.run(work); });
    while (!team.wait()) show_progress();
  }
  team.rethrow();
}

}  // namespace starling::program
