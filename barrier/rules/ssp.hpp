#pragma once

#include <algorithm>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// Stale synchronous parallel (Ho et al., NIPS 2013): pass where no seen worker is more than
/// `staleness` steps behind.
struct Ssp {
  static constexpr std::string_view name = "ssp";
  static constexpr std::string_view summary = "nobody seen is more than s steps behind me";

  /// The lag s that is tolerated; `finished` or more stands for infinity, which is ASP.
  Step staleness = 4;

  [[nodiscard]] bool admits(Step own, std::span<const Step> seen) const {
    return std::ranges::all_of(seen, [&](Step step) { return step >= *floor(own); });
  }
  [[nodiscard]] std::optional<Step> floor(Step own) const {
    return own > staleness ? own - staleness : 0;
  }
  [[nodiscard]] std::optional<Step> max_lag() const { return staleness; }

  static Ssp parse(SpecReader& read) { return {std::min(read.count_or_inf("s", 4), finished)}; }
  [[nodiscard]] std::string options() const {
    return "s=" + (staleness >= finished ? "inf" : std::to_string(staleness));
  }

  bool operator==(const Ssp&) const = default;
};

}  // namespace starling::barrier
