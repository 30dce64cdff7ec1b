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

  /// on_timer was called at `now`: whatever is due has fired. Call first in on_timer. Timers never
  /// come before their time, so a call that finds nothing due was someone else's.
  void fired(Time now) {
    std::erase_if(pending_, [&](Time set) { return set <= now; });
  }

  /// Whoever kept the timers was lost, and all of them with it.
  void forget() { pending_.clear(); }

 private:
  std::vector<Time> pending_;
};

}  // namespace starling::core
