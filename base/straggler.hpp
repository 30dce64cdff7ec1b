/// Stragglers: workers made slow on purpose, to test how a barrier copes with them. Pure values;
/// any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// Makes some of a job's workers stragglers: computation and delay of each of their steps together
/// take `factor` times as long.
struct StragglerRule {
  /// Either a number of workers or a share of them, the other being 0.
  std::size_t count = 0;
  double share = 0;
  double factor = 1;

  bool operator==(const StragglerRule&) const = default;
};

/// Reads `1:4x` (one worker) or `25%:4x`.
[[nodiscard]] Result<StragglerRule> parse_straggler(std::string_view text);
[[nodiscard]] std::string print(const StragglerRule& straggler);

/// Returns the factor of each worker: the last workers are the stragglers, all others have
/// factor 1. Shares are rounded to whole workers. Refuses a share that rounds to no worker, and
/// more stragglers than workers.
[[nodiscard]] Result<std::vector<double>> slowdown_factors(
    const std::vector<StragglerRule>& stragglers, std::size_t workers);

/// Returns (computed + delay) * factor - computed: how long a worker waits after a computation that
/// took `computed`. A step takes a year at most.
[[nodiscard]] std::chrono::nanoseconds extra_delay(std::chrono::nanoseconds computed,
                                                   std::chrono::nanoseconds delay, double factor);

}  // namespace starling
