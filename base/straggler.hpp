/// Stragglers: workers made slow on purpose, to test how a barrier copes with them. Pure values;
/// any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"

namespace starling {

/// Some workers that take `factor` times as long for each step, computing and delay together.
struct Straggler {
  /// Either a number of workers or a share of them, the other being 0.
  std::size_t count = 0;
  double share = 0;
  double factor = 1;

  bool operator==(const Straggler&) const = default;
};

/// Reads `1:4x` (one worker) or `25%:4x`.
[[nodiscard]] Result<Straggler> parse_straggler(std::string_view text);
[[nodiscard]] std::string print(const Straggler& straggler);

/// Returns the slowness factor of each worker: the last workers are the stragglers, all others have
/// factor 1. Shares are rounded to whole workers. Refuses a share that rounds to no worker, and
/// more stragglers than workers.
[[nodiscard]] Result<std::vector<double>> slowness(const std::vector<Straggler>& stragglers,
                                                   std::size_t workers);

/// Returns how much longer than `took` a step lasts whose computation (`took`) and `delay` both
/// last `factor` times as long. No step takes more than a year.
[[nodiscard]] std::chrono::nanoseconds slowed(std::chrono::nanoseconds took,
                                              std::chrono::nanoseconds delay, double factor);

}  // namespace starling
