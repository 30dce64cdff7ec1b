/// The updates per second and the loss of a job's workers on one node, over the last 5 s. Internal
/// to the cluster's node.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace starling::actor {

/// One thread at a time.
class RecentFigures {
 public:
  using Time = std::chrono::nanoseconds;

  /// Takes the sums since the job began. Requires: `now` does not fall. A worker that has gone may
  /// lower the sums.
  void note(Time now, std::uint64_t updates, double loss_sum) {
    if (!looks_.empty() && updates < looks_.back().updates) looks_.clear();
    if (!looks_.empty() && updates > looks_.back().updates) {
      const Look& from = looks_.front();
      loss_ = (loss_sum - from.loss_sum) / static_cast<double>(updates - from.updates);
      loss_count_ = updates - from.updates;
    }
    looks_.push_back({now, updates, loss_sum});
    while (looks_.size() > 2 && looks_[1].at <= now - window) looks_.pop_front();
  }

  [[nodiscard]] double updates_per_s() const {
    if (looks_.size() < 2) return 0;
    const std::chrono::duration<double> time = looks_.back().at - looks_.front().at;
    if (time.count() <= 0) return 0;
    return static_cast<double>(looks_.back().updates - looks_.front().updates) / time.count();
  }
  /// The mean loss of the batches of the last seconds in which there were any, and their number.
  [[nodiscard]] double loss() const { return loss_; }
  [[nodiscard]] std::uint64_t loss_count() const { return loss_count_; }

  static constexpr std::chrono::seconds window{5};

 private:
  struct Look {
    Time at{};
    std::uint64_t updates = 0;
    double loss_sum = 0;
  };
  std::deque<Look> looks_;
  double loss_ = 0;
  std::uint64_t loss_count_ = 0;
};

}  // namespace starling::actor
