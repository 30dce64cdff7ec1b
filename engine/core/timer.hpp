#pragma once

#include <algorithm>
#include <vector>

#include "starling/engine/core/effect.hpp"

namespace starling::core {

/// Keeps the timers of a core few: a new one is set only where none pending fires early enough.
class Timer {
 public:
  /// Makes sure that on_timer is called at `at` or before. `context.out` takes a SetTimer.
  template <class AnyContext>
  void want(const AnyContext& context, Time at) {
    if (std::ranges::any_of(pending_, [&](Time set) { return set <= at; })) return;
    pending_.push_back(at);
    context.out.push_back(SetTimer{at});
  }

  /// on_timer was called at `now`: all timers that are due have fired. Call first in on_timer.
  /// Timers never fire early, so a call that finds no timer due was for another user of on_timer.
  void fired(Time now) {
    std::erase_if(pending_, [&](Time set) { return set <= now; });
  }

  /// The driver that kept the timers was lost, and all timers with it.
  void forget() { pending_.clear(); }

 private:
  std::vector<Time> pending_;
};

}  // namespace starling::core
