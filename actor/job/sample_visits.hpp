/// Measures for how long samples are not visited, in jobs whose workers take as many samples as
/// they can (docs/design/0020).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "starling/engine/core/effect.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::actor {

/// The visits of all workers of a job in one process. Thread-safe.
class SampleVisits {
 public:
  /// Takes 8 bytes of memory for each sample.
  explicit SampleVisits(std::size_t samples) : visited_at_(samples) {}

  /// Records that a worker has computed the first `count` samples of `share`. Requires:
  /// `share.taken` is set; `now` is the time since the job started.
  void add(const core::WorkShare& share, std::size_t count, core::Time now) {
    thread_local std::vector<std::uint32_t> samples;
    share.order->batch_after(share.index, *share.taken, samples);
    samples.resize(std::min(samples.size(), count));
    const std::lock_guard lock{mutex_};
    for (const std::uint32_t sample : samples) {
      core::Time& last = visited_at_[sample];
      longest_ = std::max(longest_, now - last);
      last = std::max(last, now);
    }
  }

  /// Returns the longest time between two visits of a sample, or from the start to the first one,
  /// or from the last one to `now`.
  [[nodiscard]] core::Time longest_gap(core::Time now) const {
    const std::lock_guard lock{mutex_};
    return visited_at_.empty() ? core::Time{}
                               : std::max(longest_, now - std::ranges::min(visited_at_));
  }

 private:
  mutable std::mutex mutex_;
  /// The time of the last visit of each sample.
  std::vector<core::Time> visited_at_;
  core::Time longest_{};
};

}  // namespace starling::actor
