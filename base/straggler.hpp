/// Makes some workers slow on purpose (stragglers), to test how a barrier copes with them. Pure
/// values; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// How many of a job's workers are stragglers. Each of their steps, computation and delay together,
/// takes `factor` times as long.
struct StragglerRule {
  /// The number of stragglers, or their share of all workers; the other of the two is 0.
  std::size_t count = 0;
  double share = 0;
  double factor = 1;

  bool operator==(const StragglerRule&) const = default;
};

/// Reads `1:4x` (one worker) or `25%:4x`.
[[nodiscard]] Result<StragglerRule> parse_straggler(std::string_view text);
/// Returns text that parse_straggler reads back.
[[nodiscard]] std::string print(const StragglerRule& straggler);

/// Returns the factor of each worker: the last workers are the stragglers, all others have
/// factor 1. Shares are rounded to whole workers. Refuses a share that rounds to no worker, and
/// more stragglers than workers.
[[nodiscard]] Result<std::vector<double>> slowdown_factors(
    const std::vector<StragglerRule>& stragglers, std::size_t workers);

/// Returns how long a worker waits after a computation that took `compute_time`. `delay` is the
/// wait of a worker with factor 1. The whole step, computation and wait, then takes (compute_time +
/// delay) * factor, at most a year.
[[nodiscard]] std::chrono::nanoseconds extra_delay(std::chrono::nanoseconds compute_time,
                                                   std::chrono::nanoseconds delay, double factor);

}  // namespace starling
