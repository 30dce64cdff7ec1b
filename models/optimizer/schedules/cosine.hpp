#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "starling/models/optimizer/schedules/schedule_rule.hpp"

namespace starling::models {

/// The factor of the learning rate falls like a cosine, from 1 to `floor` over `samples` samples:
/// floor + (1 - floor) (1 + cos(pi min(samples_seen / samples, 1))) / 2 (Loshchilov, Hutter,
/// "SGDR", ICLR 2017, eq. 5, without restarts).
struct CosineRate {
  static constexpr std::string_view name = "cosine";
  static constexpr std::string_view example = "cosine:samples=600000";

  /// The number of samples over which the factor falls; at least 1.
  std::uint64_t samples = 1;
  /// The factor after `samples` samples, in [0, 1].
  double floor = 0;

  static CosineRate parse(SpecReader& reader) {
    CosineRate cosine;
    cosine.samples = read_samples(reader, "samples", example);
    cosine.floor = reader.number("floor", cosine.floor, 0, 1);
    return cosine;
  }
  [[nodiscard]] std::string options() const {
    return "samples=" + std::to_string(samples) + ",floor=" + print_number(floor);
  }

  [[nodiscard]] double factor(std::uint64_t samples_seen) const {
    const double progress = static_cast<double>(samples_seen) / static_cast<double>(samples);
    const double height = (1 + std::cos(std::numbers::pi * std::min(progress, 1.0))) / 2;
    return floor + (1 - floor) * height;
  }

  bool operator==(const CosineRate&) const = default;
};

}  // namespace starling::models
