/// The interface of a schedule of the learning rate.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"

namespace starling::models {

/// A schedule, which decides the factor of the learning rate.
template <class S>
concept ScheduleRule = Alternative<S> && requires(const S schedule, std::uint64_t samples_seen) {
  /// An example for `--help`.
  { S::example } -> std::convertible_to<std::string_view>;
  /// Returns the factor by which the learning rate is multiplied after `samples_seen` samples.
  { schedule.factor(samples_seen) } -> std::same_as<double>;
};

/// Reads a required option that counts samples. The error for a missing option shows `example`.
[[nodiscard]] inline std::uint64_t read_samples(SpecReader& reader, const char* option,
                                                std::string_view example) {
  if (!reader.has(option))
    reader.refuse(std::string{"needs "} + option + ", e.g. " + std::string{example});
  return reader.count(option, 1, 1);
}

}  // namespace starling::models
