/// Learning-rate schedules. They depend on the number of samples that all workers together have
/// seen, so that a schedule has the same effect for any number of workers, batch and barrier. To
/// add a schedule, write a file in schedules/, include it here and name it in Schedule. Plain
/// values and pure functions; thread-safe to read and call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "starling/base/result.hpp"
#include "starling/models/optimizer/schedules/constant.hpp"
#include "starling/models/optimizer/schedules/cosine.hpp"
#include "starling/models/optimizer/schedules/step.hpp"

namespace starling::models {

/// One of the schedules.
using Schedule = std::variant<ConstantRate, StepRate, CosineRate>;

/// Reads `constant`, `step:every=20000[,gamma=0.5]` or `cosine:samples=600000[,floor=0]`.
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text);

/// Returns text that parse_schedule reads back to the same value.
[[nodiscard]] std::string print(const Schedule& schedule);

/// Returns the factor by which the learning rate is multiplied after `samples_seen` samples.
[[nodiscard]] double factor(const Schedule& schedule, std::uint64_t samples_seen);

}  // namespace starling::models
