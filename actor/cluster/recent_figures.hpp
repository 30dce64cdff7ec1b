/// The updates per second and the loss of a job's workers on one node, over the last 5 s. Internal
/// to ClusterNode.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace starling::actor {

/// Not thread-safe.
class RecentFigures {
 public:
  using Time = std::chrono::nanoseconds;

  /// Counts since the job began.
  struct Counts {
    std::uint64_t updates = 0;
    /// The number of updates that have a loss, and the sum of their losses.
    std::uint64_t losses = 0;
    double loss_sum = 0;
  };

  /// Adds a reading. If a number has fallen, because a worker left, discards the earlier readings.
  /// Requires: `now` is not before the last reading.
  void add(Time now, const Counts& counts) {
    if (!readings_.empty()) {
      const Counts& last = readings_.back().counts;
      if (counts.updates < last.updates || counts.losses < last.losses) readings_.clear();
    }
    if (!readings_.empty() && counts.losses > readings_.back().counts.losses) {
      const Counts& from = readings_.front().counts;
      loss_count_ = counts.losses - from.losses;
      loss_ = (counts.loss_sum - from.loss_sum) / static_cast<double>(loss_count_);
    }
    readings_.push_back({now, counts});
    // The oldest reading that is kept is the last one from before the window, so that two readings
    // span it.
    while (readings_.size() > 2 && readings_[1].read_at <= now - window) readings_.pop_front();
  }

  /// Returns the updates per second over the last 5 s; 0 until there are two readings at different
  /// times.
  [[nodiscard]] double updates_per_s() const {
    if (readings_.size() < 2) return 0;
    const std::chrono::duration<double> time = readings_.back().read_at - readings_.front().read_at;
    if (time.count() <= 0) return 0;
    const std::uint64_t before = readings_.front().counts.updates;
    return static_cast<double>(readings_.back().counts.updates - before) / time.count();
  }
  /// The mean loss of the batches of the last 5 s that have one, and the number of these batches.
  /// If there were none, both stay as they were.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] std::uint64_t loss_count() const { return loss_count_; }

  static constexpr std::chrono::seconds window{5};

 private:
  struct Reading {
    Time read_at{};
    Counts counts{};
  };
  std::deque<Reading> readings_;
  double loss_ = 0;
  std::uint64_t loss_count_ = 0;
};

}  // namespace starling::actor
