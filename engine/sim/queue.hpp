/// The virtual clock of a simulation, and the queue of its future events. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/ids.hpp"

namespace starling::sim {

using core::Time;

/// Returns events in the order of their times, and events of the same time in the order of
/// insertion, so that runs are reproducible. The heap moves small keys only, not the events.
template <class Event>
class Queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  [[nodiscard]] Time now() const noexcept { return now_; }

  /// Returns the time of the next event. Requires: !empty().
  [[nodiscard]] Time next_at() const {
    STARLING_CHECK(!heap_.empty());
    return heap_.front().at;
  }

  /// Schedules `event` at `at`, or now if that time has passed.
  void push(Time at, Event event) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(events_.size());
      events_.push_back(std::move(event));
    } else {
      slot = free_.back();
      free_.pop_back();
      events_[slot] = std::move(event);
    }
    heap_.push_back({std::max(at, now_), order_++, slot});
    std::ranges::push_heap(heap_, later);
  }

  /// Removes and returns the next event, and sets the clock to its time. Requires: !empty().
  Event pop() {
    STARLING_CHECK(!heap_.empty());
    std::ranges::pop_heap(heap_, later);
    const Key key = heap_.back();
    heap_.pop_back();
    free_.push_back(key.slot);
    now_ = key.at;
    return std::move(events_[key.slot]);
  }

  /// Advances the clock to `now` without an event. Requires: no event before `now`.
  void advance(Time now) {
    STARLING_CHECK(heap_.empty() || heap_.front().at >= now);
    now_ = std::max(now_, now);
  }

 private:
  struct Key {
    Time at;
    std::uint64_t order;
    std::uint32_t slot;
  };

  static bool later(const Key& a, const Key& b) noexcept {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  Time now_{};
  std::uint64_t order_ = 0;
  std::vector<Key> heap_;
  std::vector<Event> events_;
  /// The positions in events_ that hold no event.
  std::vector<std::uint32_t> free_;
};

}  // namespace starling::sim
