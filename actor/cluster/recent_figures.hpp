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

  /// Adds a reading: the number of updates since the job began, the number of those that have a
  /// loss, and the sum of their losses. If a number has fallen, because a worker left, discards the
  /// earlier readings. Requires: `now` is not before the last reading.
  void add(Time now, std::uint64_t updates, std::uint64_t losses, double loss_sum) {
    if (!readings_.empty() &&
        (updates < readings_.back().updates || losses < readings_.back().losses))
      readings_.clear();
    if (!readings_.empty() && losses > readings_.back().losses) {
      const Reading& from = readings_.front();
      loss_ = (loss_sum - from.loss_sum) / static_cast<double>(losses - from.losses);
      loss_count_ = losses - from.losses;
    }
    readings_.push_back({now, updates, losses, loss_sum});
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
    return static_cast<double>(readings_.back().updates - readings_.front().updates) / time.count();
  }
  /// The mean loss of the batches of the last 5 s, and the number of these batches. If there were
  /// none, both stay as they were.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] std::uint64_t loss_count() const { return loss_count_; }

  static constexpr std::chrono::seconds window{5};

 private:
  struct Reading {
    Time read_at{};
    std::uint64_t updates = 0;
    std::uint64_t losses = 0;
    double loss_sum = 0;
  };
  std::deque<Reading> readings_;
  double loss_ = 0;
  std::uint64_t loss_count_ = 0;
};

}  // namespace starling::actor
