/// Makes some workers slow or unavailable on purpose (stragglers), to test how a barrier copes.
/// Pure values; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// A worker that is away for the first `away` of each `period`: it computes nothing, and neither
/// sends nor receives. Always available if `away` is 0.
struct Absence {
  std::chrono::nanoseconds away{};
  std::chrono::nanoseconds period{};

  bool operator==(const Absence&) const = default;
};

/// How many of a job's workers are stragglers. Each of their steps, computation and delay together,
/// takes `factor` times as long; or they are away for a part of the time.
struct StragglerRule {
  /// The number of stragglers, or their share of all workers; the other of the two is 0.
  std::size_t count = 0;
  double share = 0;
  double factor = 1;
  /// Simulations only. `factor` is 1 if the stragglers are away.
  Absence absence = {};

  bool operator==(const StragglerRule&) const = default;
};

/// Reads `1:4x` (one worker), `25%:4x`, or `25%:away=5s/10s` (away for 5 s of each 10 s).
[[nodiscard]] Result<StragglerRule> parse_straggler(std::string_view text);
/// Returns text that parse_straggler reads back.
[[nodiscard]] std::string print(const StragglerRule& straggler);

/// Returns the factor of each worker: the last workers are the stragglers, all others have
/// factor 1. Shares are rounded to whole workers. Refuses a share that rounds to no worker, and
/// more stragglers than workers.
[[nodiscard]] Result<std::vector<double>> slowdown_factors(
    const std::vector<StragglerRule>& stragglers, std::size_t workers);

/// Returns the absence of each worker, as slowdown_factors() does the factors; empty if no worker
/// is ever away.
[[nodiscard]] Result<std::vector<Absence>> absences(const std::vector<StragglerRule>& stragglers,
                                                    std::size_t workers);

/// Refuses stragglers that are away: only simulated workers can be.
[[nodiscard]] Result<void> check_always_available(const std::vector<StragglerRule>& stragglers);

/// Returns how long a worker waits after a computation that took `compute_time`. `delay` is the
/// wait of a worker with factor 1. The whole step, computation and wait, then takes (compute_time +
/// delay) * factor, at most a year.
[[nodiscard]] std::chrono::nanoseconds extra_delay(std::chrono::nanoseconds compute_time,
                                                   std::chrono::nanoseconds delay, double factor);

}  // namespace starling
