#pragma once

#include <algorithm>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// Bulk synchronous parallel: pass where no seen worker is behind (lag <= 0).
struct Bsp {
  static constexpr std::string_view name = "bsp";
  static constexpr std::string_view summary = "nobody seen is behind me";

  [[nodiscard]] bool admits(Step own, std::span<const Step> seen) const {
    return std::ranges::all_of(seen, [&](Step step) { return step >= own; });
  }
  [[nodiscard]] std::optional<Step> floor(Step own) const { return own; }
  [[nodiscard]] std::optional<Step> max_lag() const { return 0; }

  static Bsp parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Bsp&) const = default;
};

}  // namespace starling::barrier
