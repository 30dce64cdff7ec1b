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

/// Hands out the pieces to the threads and waits for their end.
class ThreadTeam {
 public:
  ThreadTeam(std::size_t count, std::size_t threads) : count_(count), running_(threads) {}

  void run(const std::function<void(std::size_t)>& work) noexcept {
    try {
      for (std::size_t i = 0; (i = next_++) < count_;) work(i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard lock{mutex_};
      if (!fault_) fault_ = std::current_exception();
    }
    const std::lock_guard lock{mutex_};
    if (--running_ == 0) ended_.notify_all();
  }

  /// Waits up to 100 ms; returns true once all threads have ended.
  bool wait() {
    std::unique_lock lock{mutex_};
    return ended_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return running_ == 0; });
  }

  void rethrow() const {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  const std::size_t count_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_;
  std::exception_ptr fault_;
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

double ProgressEstimator::spent_s(const Piece& piece, Clock::time_point now) {
  if (!piece.started_at) return 0;
  return in_seconds(piece.ended_at.value_or(now) - *piece.started_at);
}

std::optional<double> ProgressEstimator::whole_s(const Piece& piece, Clock::time_point now) {
  constexpr double share_min = 0.01;
  if (piece.share < share_min) return std::nullopt;
  return spent_s(piece, now) / std::min(1.0, piece.share);
}

PieceProgress ProgressEstimator::progress(Clock::time_point now) const {
  const std::lock_guard lock{mutex_};
  struct Measured {
    double seconds = 0;
    double cost = 0;
  };
  Measured all;
  std::map<std::size_t, Measured> measured_by_kind;
  double shares = 0;
  for (const Piece& piece : pieces_) {
    shares += piece.share;
    const auto whole = whole_s(piece, now);
    if (!whole) continue;
    for (Measured* measured : {&all, &measured_by_kind[piece.kind.id]})
      *measured = {measured->seconds + *whole, measured->cost + piece.kind.cost};
  }
  if (pieces_.empty()) return {1, 0};
  if (all.cost <= 0) return {shares / static_cast<double>(pieces_.size()), std::nullopt};
  double spent = 0;
  double left = 0;
  double longest = 0;
  for (const Piece& piece : pieces_) {
    const auto kind = measured_by_kind.find(piece.kind.id);
    const Measured& measured = kind == measured_by_kind.end() ? all : kind->second;
    const double whole =
        whole_s(piece, now).value_or(measured.seconds / measured.cost * piece.kind.cost);
    const double piece_left_s = piece.ended_at ? 0 : std::max(0.0, whole - spent_s(piece, now));
    spent += spent_s(piece, now);
    left += piece_left_s;
    longest = std::max(longest, piece_left_s);
  }
  const double share = spent + left > 0 ? spent / (spent + left) : 1;
  return {share, std::max(longest, left / static_cast<double>(threads_))};
}

void for_each_piece(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t)>& work,
                    const std::function<void()>& watch) {
  STARLING_CHECK(threads > 0);
  const std::size_t thread_count = std::min(threads, count);
  if (thread_count == 0) return;
  ThreadTeam team{count, thread_count};
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < thread_count; ++i) workers.emplace_back([&] { team.run(work); });
    while (!team.wait()) watch();
  }
  team.rethrow();
}

}  // namespace starling::program
