/// Decides when a worker that may not pass looks again. This affects the outcome of sampled
/// barriers more than the sample size does, so it is always explicit.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::barrier {

/// Any combination of triggers; the first trigger to fire leads to a fresh draw.
struct Recheck {
  using Duration = std::chrono::nanoseconds;

  /// Every waiting worker draws afresh whenever an update arrives. Possible only where one place
  /// sees every step.
  bool arrival = false;
  /// The first laggard of the draw notifies the waiting worker when it has caught up.
  bool notify = false;
  /// The worker draws afresh this long after the last draw was decided; `automatic` stands for a
  /// quarter of the worker's median step time.
  std::optional<Duration> interval = std::nullopt;

  static constexpr Duration automatic{-1};

  /// The defaults: `arrival` where the steps are central, else `notify+interval:auto`.
  static constexpr Recheck central() { return {.arrival = true}; }
  static constexpr Recheck distributed() { return {.notify = true, .interval = automatic}; }

  bool operator==(const Recheck&) const = default;
};

/// Reads `arrival`, `notify`, `interval:5ms`, `interval:auto`, `notify+interval:5ms`, ...
[[nodiscard]] Result<Recheck> parse_recheck(std::string_view text);

/// The text that parse_recheck reads back.
[[nodiscard]] std::string print(const Recheck& recheck);

}  // namespace starling::barrier
