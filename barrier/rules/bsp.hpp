#pragma once

#include <algorithm>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// Bulk synchronous parallel: a worker passes if no seen worker is behind it (lag <= 0).
struct Bsp {
  static constexpr std::string_view name = "bsp";
  static constexpr std::string_view summary = "pass if no seen worker is behind";

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return std::ranges::all_of(seen, [&](Step step) { return step >= own_step; });
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const { return own_step; }
  [[nodiscard]] std::optional<Step> max_lag() const { return 0; }

  static Bsp parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Bsp&) const = default;
};

}  // namespace starling::barrier
