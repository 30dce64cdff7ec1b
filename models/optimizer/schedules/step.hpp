#pragma once

#include <cmath>

#include "starling/models/optimizer/schedules/schedule_rule.hpp"

namespace starling::models {

/// The factor of the learning rate is multiplied by gamma after every `every` samples:
/// gamma^floor(samples_seen / every).
struct StepRate {
  static constexpr std::string_view name = "step";
  static constexpr std::string_view example = "step:every=20000,gamma=0.5";

  /// The number of samples between two changes of the factor; at least 1.
  std::uint64_t every = 1;
  double gamma = 0.5;

  static StepRate parse(SpecReader& reader) {
    StepRate step;
    step.every = read_samples(reader, "every", example);
    step.gamma = reader.number("gamma", step.gamma, 0, 1);
    return step;
  }
  [[nodiscard]] std::string options() const {
    return "every=" + std::to_string(every) + ",gamma=" + print_number(gamma);
  }

  [[nodiscard]] double factor(std::uint64_t samples_seen) const {
    const std::uint64_t drops = samples_seen / every;
    return std::pow(gamma, static_cast<double>(drops));
  }

  bool operator==(const StepRate&) const = default;
};

}  // namespace starling::models
