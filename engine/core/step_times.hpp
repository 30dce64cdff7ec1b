#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// The last 15 step times of a worker, from which the recheck interval `auto` is computed.
class StepTimes {
 public:
  void add(Time took) { times_[count_++ % times_.size()] = took; }

  /// Returns a quarter of the median, at least 50 us: finer timers cost more than they find.
  [[nodiscard]] Time recheck_interval() const {
    constexpr Time least = std::chrono::microseconds{50};
    const std::size_t known = std::min(count_, times_.size());
    if (known == 0) return least;
    auto sorted = times_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(known / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return std::max(least, *middle / 4);
  }

 private:
  std::array<Time, 15> times_{};
  std::size_t count_ = 0;
};

}  // namespace starling::core
