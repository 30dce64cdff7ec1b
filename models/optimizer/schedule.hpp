/// Learning-rate schedules, keyed to the samples that all workers together have seen, so that a run
/// means the same whatever the number of workers, the batch and the barrier. A new schedule is one
/// file in schedules/, included and named here. Plain values and functions.
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

/// The closed set of schedules.
using Schedule = std::variant<ConstantRate, StepRate, CosineRate>;

/// Reads `constant`, `step:every=20000[,gamma=0.5]` or `cosine:samples=600000[,floor=0]`.
[[nodiscard]] Result<Schedule> parse_schedule(std::string_view text);

/// Returns text that parse_schedule reads back to the same value.
[[nodiscard]] std::string print(const Schedule& schedule);

/// Returns the factor of the learning rate after training on `samples_seen` samples.
[[nodiscard]] double factor(const Schedule& schedule, std::uint64_t samples_seen);

}  // namespace starling::models
