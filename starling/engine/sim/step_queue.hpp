/// When which worker is due: the event queue of the step level. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::sim {

/// A ring of buckets of time. A bucket is sorted when its time comes, so that a push touches the
/// end of one bucket only: beyond 10^5 workers a heap would miss the cache at each level. What lies
/// beyond the ring is kept aside until the ring has come nearer.
///
/// Events of one moment come in the order of their workers.
class StepQueue {
 public:
  struct Event {
    core::Time at;
    core::MemberId worker;
  };

  /// For about `workers` events, each about `mean` after the one before it.
  StepQueue(std::size_t workers, core::Time mean);

  /// Requires: `at` is not before the last event that was popped.
  void push(core::Time at, core::MemberId worker);

  /// The next event; nullopt where there is none.
  [[nodiscard]] std::optional<Event> pop();

  /// A worker that is due soon, to have its memory fetched; nullopt where that is not known.
  [[nodiscard]] std::optional<core::MemberId> soon() const {
    constexpr std::size_t ahead = 8;
    if (next_ + ahead >= due_.size()) return std::nullopt;
    return static_cast<core::MemberId>(due_[next_ + ahead]);
  }

 private:
  /// Time since the bucket's beginning above, worker below: sorting sorts by both.
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
  /// The bucket whose time it is, sorted; those before next_ are past.
  std::uint64_t current_ = 0;
  Bucket due_;
  std::size_t next_ = 0;
};

}  // namespace starling::sim
