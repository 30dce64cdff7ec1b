/// Says when a waiting worker tries to pass its barrier again. This choice affects the results of
/// sampled barriers more than the sample size does, so it is always explicit. Plain values;
/// thread-safe to read.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::barrier {

/// A combination of triggers; when the first of them fires, the worker draws its sample afresh.
struct Recheck {
  using Duration = std::chrono::nanoseconds;

  /// Every waiting worker draws afresh whenever an update arrives. Possible only if one member
  /// knows every step.
  bool arrival = false;
  /// The first laggard of the draw notifies the waiting worker when it has caught up.
  bool notify = false;
  /// The worker draws afresh this long after its last draw was decided. `automatic` stands for a
  /// quarter of the worker's median step time.
  std::optional<Duration> interval = std::nullopt;

  static constexpr Duration automatic{-1};

  /// The default if one member knows every step: `arrival`.
  static constexpr Recheck central() { return {.arrival = true}; }
  /// The default if workers ask each other for their steps: `notify+interval:auto`.
  static constexpr Recheck distributed() { return {.notify = true, .interval = automatic}; }

  bool operator==(const Recheck&) const = default;
};

/// Reads `arrival`, `notify`, `interval:5ms`, `interval:auto`, `notify+interval:5ms`, ...
[[nodiscard]] Result<Recheck> parse_recheck(std::string_view text);

/// Returns text that parse_recheck reads back.
[[nodiscard]] std::string print(const Recheck& recheck);

}  // namespace starling::barrier
