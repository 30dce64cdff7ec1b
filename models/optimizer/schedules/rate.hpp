/// The interface of a schedule of the learning rate.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"

namespace starling::models {

/// Decides the factor of the learning rate.
template <class S>
concept ScheduleRule = Alternative<S> && requires(const S schedule, std::uint64_t samples_seen) {
  /// An example for `--help`.
  { S::form } -> std::convertible_to<std::string_view>;
  { schedule.factor(samples_seen) } -> std::same_as<double>;
};

/// Reads a count of samples that has no default.
[[nodiscard]] inline std::uint64_t read_samples(SpecReader& read, const char* key,
                                                std::string_view example) {
  if (!read.has(key)) read.refuse(std::string{"needs "} + key + ", e.g. " + std::string{example});
  return read.count(key, 1, 1);
}

}  // namespace starling::models
