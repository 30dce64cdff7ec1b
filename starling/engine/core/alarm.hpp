#pragma once

#include <algorithm>
#include <vector>

#include "starling/engine/core/effect.hpp"

namespace starling::core {

/// Keeps the timers of a core few: a new one is set only where none pending fires early enough.
class Alarm {
 public:
  /// Makes sure that on_timer is called at `at` or before. `context.out` takes a SetTimer.
  template <class AnyContext>
  void want(const AnyContext& context, Time at) {
    if (std::ranges::any_of(pending_, [&](Time set) { return set <= at; })) return;
    pending_.push_back(at);
    context.out.push_back(SetTimer{at});
  }

  /// Forgets the timer that called on_timer: the earliest, even where it came before its time, and
  /// whatever else is due. Call first in on_timer.
  void fired(Time now) {
    if (const auto first = std::ranges::min_element(pending_); first != pending_.end())
      pending_.erase(first);
    std::erase_if(pending_, [&](Time set) { return set <= now; });
  }

  /// Whoever kept the timers was lost, and all of them with it.
  void forget() { pending_.clear(); }

 private:
  std::vector<Time> pending_;
};

}  // namespace starling::core
