/// Keeps the latest intervals of the workers of one job on one node, until clients fetch them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "starling/actor/job/interval.hpp"

namespace starling::actor {

/// Thread-safe. No call waits for more than the copy of `slice_size` intervals, so that a client
/// that reads does not delay a step.
class TraceBuffer {
 public:
  /// This many intervals take 3 MB of memory.
  static constexpr std::size_t intervals_max_default = 65'536;
  /// The most intervals that one read() returns.
  static constexpr std::size_t read_max = 8'192;

  /// Requires: `intervals_max` > 0.
  explicit TraceBuffer(std::size_t intervals_max = intervals_max_default)
      : intervals_max_(intervals_max) {}

  /// Adds an interval of `worker`. If the buffer is full, the oldest interval is dropped.
  void add(core::MemberId worker, const Interval& interval) {
    const std::lock_guard lock{mutex_};
    if (intervals_.size() == intervals_max_) {
      intervals_.pop_front();
      ++first_;
    }
    intervals_.push_back({worker, interval});
  }

  struct Part {
    /// The number of the first of `intervals`. The intervals of a job are numbered from 0.
    std::uint64_t first = 0;
    std::vector<WorkerInterval> intervals;
  };

  /// Returns intervals from number `from` on, or from the oldest one that is kept if that is later;
  /// at most `read_max`. Reads may be repeated, and several clients may read.
  [[nodiscard]] Part read(std::uint64_t from) const {
    Part part;
    while (part.intervals.size() < read_max) {
      const std::lock_guard lock{mutex_};
      const std::uint64_t next = first_ + intervals_.size();
      if (part.intervals.empty()) part.first = std::min(std::max(from, first_), next);
      // Ends also where intervals were dropped since the last slice was copied. The next read
      // begins after the dropped intervals.
      const std::uint64_t wanted = part.first + part.intervals.size();
      if (wanted < first_ || wanted == next) break;
      const auto begin = intervals_.begin() + static_cast<std::ptrdiff_t>(wanted - first_);
      const std::size_t count = std::min(
          {slice_size, read_max - part.intervals.size(), static_cast<std::size_t>(next - wanted)});
      part.intervals.insert(part.intervals.end(), begin,
                            begin + static_cast<std::ptrdiff_t>(count));
    }
    return part;
  }

 private:
  static constexpr std::size_t slice_size = 512;

  std::size_t intervals_max_;
  mutable std::mutex mutex_;
  /// The number of the first of intervals_.
  std::uint64_t first_ = 0;
  std::deque<WorkerInterval> intervals_;
};

}  // namespace starling::actor
