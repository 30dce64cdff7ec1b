/// Internal to the simulation of steps: the waiting workers that the coordinator has released while
/// they are away. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/engine/sim/steps/steps.hpp"

namespace starling::sim {

/// A worker that is away learns of its release when it is back, and waits until then.
class LateReleases {
 public:
  explicit LateReleases(const StepOptions& options)
      : is_released_(options.absences.empty() ? 0 : options.workers) {}

  /// Returns how many workers were released and do not know it yet.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  void add(MemberId worker) {
    is_released_[worker] = true;
    ++count_;
  }
  /// Removes a worker that is back. Returns false if it was not released while it was away.
  bool remove(MemberId worker) {
    if (is_released_.empty() || !is_released_[worker]) return false;
    is_released_[worker] = false;
    --count_;
    return true;
  }

 private:
  std::vector<bool> is_released_;
  std::size_t count_ = 0;
};

}  // namespace starling::sim
