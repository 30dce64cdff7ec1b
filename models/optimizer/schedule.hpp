/// Learning-rate schedules, keyed to the samples that all workers together have seen, so that a run
/// means the same whatever the number of workers, the batch and the barrier. Plain values and
/// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "starling/base/result.hpp"

namespace starling::models {

/// The factor is 1.
struct ConstantRate {
  bool operator==(const ConstantRate&) const = default;
};

/// gamma^floor(samples / every).
struct StepRate {
  /// Samples; at least 1.
  std::uint64_t every = 1;
  double gamma = 0.5;
  bool operator==(const StepRate&) const = default;
};

/// floor + (1 - floor) (1 + cos(pi min(seen / samples, 1))) / 2 (Loshchilov, Hutter, "SGDR", ICLR
/// 2017, eq. 5, without restarts).
struct CosineRate {
  /// Samples over which the factor falls; at least 1.
  std::uint64_t samples = 1;
  /// The factor after these samples, in [0, 1].
  double floor = 0;
  bool operator==(const CosineRate&) const = default;
};

using Schedule = std::variant<ConstantRate, StepRate, CosineRate>;

/// Reads `constant`, `step:every=20000[,gamma=0.5]` or `cosine:samples=600000[,floor=0]`.
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text);

/// Returns text that parse_schedule reads back to the same value.
[[nodiscard]] std::string print(const Schedule& schedule);

/// Returns the factor of the learning rate after training on `samples_seen` samples.
[[nodiscard]] double factor(const Schedule& schedule, std::uint64_t samples_seen);

}  // namespace starling::models
