#pragma once

#include <algorithm>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// Stale synchronous parallel (Ho et al., NIPS 2013): a worker passes if no seen worker is more
/// than `staleness` steps behind it.
struct Ssp {
  static constexpr std::string_view name = "ssp";
  static constexpr std::string_view summary = "pass if no seen worker is over s steps behind";

  /// The largest lag that the rule tolerates, s; `unlimited` or more stands for infinity, which
  /// makes the rule ASP.
  Step staleness = 4;

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return std::ranges::all_of(seen, [&](Step step) { return step >= *floor(own_step); });
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const {
    return own_step > staleness ? own_step - staleness : 0;
  }
  [[nodiscard]] std::optional<Step> max_lag() const { return staleness; }

  static Ssp parse(SpecReader& reader) {
    return {std::min(reader.count_or_inf("s", 4), unlimited)};
  }
  [[nodiscard]] std::string options() const {
    return "s=" + (staleness >= unlimited ? "inf" : std::to_string(staleness));
  }

  bool operator==(const Ssp&) const = default;
};

}  // namespace starling::barrier
