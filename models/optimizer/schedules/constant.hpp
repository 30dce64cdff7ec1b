#pragma once

#include "starling/models/optimizer/schedules/schedule_rule.hpp"

namespace starling::models {

/// The factor of the learning rate is always 1.
struct ConstantRate {
  static constexpr std::string_view name = "constant";
  static constexpr std::string_view example = "constant";

  static ConstantRate parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  [[nodiscard]] double factor(std::uint64_t) const { return 1; }

  bool operator==(const ConstantRate&) const = default;
};

}  // namespace starling::models
