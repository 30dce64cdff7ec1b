/// Decides when a core must ask its driver for another timer.
#pragma once

#include <algorithm>
#include <vector>

#include "starling/engine/core/effect.hpp"

namespace starling::core {

/// Keeps the number of a core's timers small: sets a new timer only if no pending one fires early
/// enough. One call at a time; not thread-safe.
class Timer {
 public:
  /// Makes sure that on_timer is called at `at` or before: appends a SetTimer to `context.out` if
  /// no pending timer does.
  template <class AnyContext>
  void ensure(const AnyContext& context, Time at) {
    if (std::ranges::any_of(pending_, [&](Time fires_at) { return fires_at <= at; })) return;
    pending_.push_back(at);
    context.out.push_back(SetTimer{at});
  }

  /// Removes the timers that are due at `now`. Call it first in on_timer. A timer never fires
  /// early, so if none is due, on_timer was called for another Timer of the core.
  void remove_due(Time now) {
    std::erase_if(pending_, [&](Time fires_at) { return fires_at <= now; });
  }

  /// Forgets all pending timers: the driver that kept them was lost.
  void forget() { pending_.clear(); }

 private:
  std::vector<Time> pending_;
};

}  // namespace starling::core
