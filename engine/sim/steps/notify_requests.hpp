/// Internal: the requests of waiters to laggards, by which a simulation of steps gives notice. Not
/// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;

/// A waiter asks a laggard to give notice once it has caught up.
struct NotifyRequest {
  MemberId from;
  Step floor;
  std::uint64_t draw;
};

/// The requests that one laggard received; the last request of each waiter counts.
class NotifyRequests {
 public:
  void add(const NotifyRequest& request) {
    if (all_.size() == all_.capacity()) {
      tidy();
      if (2 * all_.size() >= all_.capacity()) all_.reserve(2 * all_.capacity() + 8);
    }
    all_.push_back(request);
  }

  /// Removes and returns the requests that a step fulfils, by waiter.
  std::vector<NotifyRequest> take(Step step) {
    tidy();
    std::vector<NotifyRequest> granted;
    std::erase_if(all_, [&](const NotifyRequest& request) {
      if (step < request.floor) return false;
      granted.push_back(request);
      return true;
    });
    return granted;
  }

 private:
  void tidy() {
    std::ranges::sort(all_, {}, [](const NotifyRequest& w) { return std::pair{w.from, w.draw}; });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (i + 1 == all_.size() || all_[i + 1].from != all_[i].from) all_[kept++] = all_[i];
    all_.resize(kept);
  }

  std::vector<NotifyRequest> all_;
};

}  // namespace starling::sim
