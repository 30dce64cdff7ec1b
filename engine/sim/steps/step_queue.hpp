/// The event queue of the simulation of steps: which worker is due when. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::sim {

/// A calendar queue: a ring of buckets, each for an interval of time. A push appends to a bucket,
/// which is sorted only when its time comes. (With more than 10^5 workers, a heap would miss the
/// cache at each of its levels.) Events too late for the ring are kept apart until the ring reaches
/// them.
///
/// Events of the same time come in the order of their workers.
class StepQueue {
 public:
  struct Event {
    core::Time at;
    core::MemberId worker;
  };

  /// Chooses the number and the width of the buckets for `workers` workers, each of which is due
  /// about `mean` after its last event.
  StepQueue(std::size_t workers, core::Time mean);

  /// Requires: `at` is not before the last event that was popped.
  void push(core::Time at, core::MemberId worker);

  /// Removes and returns the next event; nullopt if there is none.
  [[nodiscard]] std::optional<Event> pop();

  /// Returns a worker that is due soon, so that its memory can be prefetched; nullopt if none is
  /// known.
  [[nodiscard]] std::optional<core::MemberId> due_soon() const {
    constexpr std::size_t ahead = 8;
    if (next_ + ahead >= current_events_.size()) return std::nullopt;
    return static_cast<core::MemberId>(current_events_[next_ + ahead]);
  }

 private:
  /// An event of a bucket. The upper 32 bits are the time since the bucket's beginning, in ns; the
  /// lower 32 bits are the worker. So keys are sorted by time, then by worker.
  using Key = std::uint64_t;
  using Bucket = std::vector<Key>;

  [[nodiscard]] std::uint64_t bucket_of(core::Time at) const {
    return static_cast<std::uint64_t>(at.count()) >> width_bits_;
  }
  [[nodiscard]] Key key_of(core::Time at, core::MemberId worker) const;
  void advance();
  void fill_ring();

  /// A bucket is 2^width_bits_ ns wide.
  unsigned width_bits_;
  std::vector<Bucket> ring_;
  std::size_t events_in_ring_ = 0;
  std::vector<Event> beyond_ring_;
  /// The number of the bucket whose time has come, and its events, sorted. The events before next_
  /// were popped.
  std::uint64_t current_bucket_ = 0;
  Bucket current_events_;
  std::size_t next_ = 0;
};

}  // namespace starling::sim
