/// Measures how long a worker's steps and computations take. One call at a time; not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// The last 15 step times of a worker, from which the recheck interval `auto` is computed.
class StepTimes {
 public:
  void add(Time step_time) { times_[count_++ % times_.size()] = step_time; }

  /// Returns a quarter of the median step time, but at least 50 us: rechecking more often costs
  /// more than it gains.
  [[nodiscard]] Time recheck_interval() const {
    constexpr Time shortest = std::chrono::microseconds{50};
    const std::size_t known = std::min(count_, times_.size());
    if (known == 0) return shortest;
    auto sorted = times_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(known / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(known));
    return std::max(shortest, *middle / 4);
  }

 private:
  std::array<Time, 15> times_{};
  std::size_t count_ = 0;
};

/// Measures how many samples a worker computes in which time: since the last restart() and, until
/// this is 4 batches, also in the period before it. A restart() after fewer than 4 batches has no
/// effect.
class WorkMeter {
 public:
  struct Done {
    std::uint64_t samples = 0;
    Time time{};
  };

  void add(std::uint64_t samples, Time time) {
    ++batches_;
    present_.samples += samples;
    present_.time += time;
  }

  void restart() {
    if (batches_ < batches_min) return;
    former_ = std::exchange(present_, {});
    batches_ = 0;
  }

  [[nodiscard]] Done done() const {
    if (batches_ >= batches_min) return present_;
    return {former_.samples + present_.samples, former_.time + present_.time};
  }

 private:
  static constexpr std::uint64_t batches_min = 4;

  Done former_;
  Done present_;
  std::uint64_t batches_ = 0;
};

}  // namespace starling::core
