/// The virtual clock and the events to come. Not thread-safe.
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

/// Events in the order of their times, and those of one time in the order of insertion: the same
/// run always does the same. A binary heap of small keys; the events themselves stay where they
/// are.
template <class Event>
class Queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return heap_.size(); }
  [[nodiscard]] Time now() const noexcept { return now_; }

  /// Returns the time of the next event. Requires: !empty().
  [[nodiscard]] Time next() const {
    STARLING_CHECK(!heap_.empty());
    return heap_.front().at;
  }

  /// Schedules `event` at `at`, or now where that time has passed.
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

  /// Takes the next event out and sets the clock to its time. Requires: !empty().
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
  /// Free places in events_.
  std::vector<std::uint32_t> free_;
};

}  // namespace starling::sim
