/// The event queue of the step level: which worker is due when. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::sim {

/// A ring of buckets of time. A bucket is sorted when its time comes, so that a push touches the
/// end of one bucket only: beyond 10^5 workers a heap would miss the cache at each level. Events
/// beyond the ring are kept aside until the ring has come nearer.
///
/// Events of one moment come in the order of their workers.
class StepQueue {
 public:
  struct Event {
    core::Time at;
    core::MemberId worker;
  };

  /// For `workers` workers, each due about `mean` after its last event.
  StepQueue(std::size_t workers, core::Time mean);

  /// Requires: `at` is not before the last event that was popped.
  void push(core::Time at, core::MemberId worker);

  /// Removes and returns the next event; nullopt where there is none.
  [[nodiscard]] std::optional<Event> pop();

  /// Returns a worker that is due soon, so that its memory can be fetched; nullopt where that is
  /// not known.
  [[nodiscard]] std::optional<core::MemberId> soon() const {
    constexpr std::size_t ahead = 8;
    if (next_ + ahead >= due_.size()) return std::nullopt;
    return static_cast<core::MemberId>(due_[next_ + ahead]);
  }

 private:
  /// Time since the bucket's beginning in the upper 32 bits, worker in the lower: sorting sorts by
  /// both.
  using Key = std::uint64_t;
  using Bucket = std::vector<Key>;

  [[nodiscard]] std::uint64_t bucket_of(core::Time at) const {
    return static_cast<std::uint64_t>(at.count()) >> width_bits_;
  }
  [[nodiscard]] Key key_of(core::Time at, core::MemberId worker) const;
  void advance();
  void fetch_far();

  unsigned width_bits_;
  std::vector<Bucket> ring_;
  std::size_t in_ring_ = 0;
  std::vector<Event> far_;
  /// The bucket whose time it is, and its events, sorted; those before next_ are past.
  std::uint64_t current_ = 0;
  Bucket due_;
  std::size_t next_ = 0;
};

}  // namespace starling::sim
