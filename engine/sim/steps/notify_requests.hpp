/// Internal to the simulation of steps: the requests of waiting workers to be notified by laggards.
/// Not thread-safe.
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

/// The worker `from`, which waits after its draw number `draw`, asks a laggard to notify it when
/// the laggard's step has reached `floor`.
struct NotifyRequest {
  MemberId from;
  Step floor;
  std::uint64_t draw;
};

/// The requests that one laggard has received. Only the last request of each waiting worker counts.
class NotifyRequests {
 public:
  void add(const NotifyRequest& request) {
    if (requests_.size() == requests_.capacity()) {
      remove_replaced();
      if (2 * requests_.size() >= requests_.capacity())
        requests_.reserve(2 * requests_.capacity() + 8);
    }
    requests_.push_back(request);
  }

  /// Removes and returns the requests that the laggard's new step `step` fulfils, in the order of
  /// the waiting workers' ids.
  std::vector<NotifyRequest> take_fulfilled(Step step) {
    remove_replaced();
    std::vector<NotifyRequest> fulfilled;
    std::erase_if(requests_, [&](const NotifyRequest& request) {
      if (step < request.floor) return false;
      fulfilled.push_back(request);
      return true;
    });
    return fulfilled;
  }

 private:
  /// Keeps only the last request of each waiting worker.
  void remove_replaced() {
    std::ranges::sort(requests_, {}, [](const NotifyRequest& request) {
      return std::pair{request.from, request.draw};
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (i + 1 == requests_.size() || requests_[i + 1].from != requests_[i].from)
        requests_[kept++] = requests_[i];
    requests_.resize(kept);
  }

  std::vector<NotifyRequest> requests_;
};

}  // namespace starling::sim
