#pragma once

#include <algorithm>
#include <cmath>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// A worker passes if at least `share` of the workers that it sees, itself included, have finished
/// at least as many steps as it has. So no worker waits for the slowest workers, a share of
/// 1 - `share`, which serve as backups. (In Chen et al., arXiv 1604.00981, the updates of late
/// workers are dropped; here they are applied.) With share 1 this rule is BSP.
struct Quorum {
  static constexpr std::string_view name = "quorum";
  static constexpr std::string_view summary = "pass if a share q of the workers is not behind";

  double share = 0.9;

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    const auto arrived =
        1 + std::ranges::count_if(seen, [&](Step step) { return step >= own_step; });
    return arrived >= needed(seen.size() + 1);
  }
  /// Returns how many of `workers` must have arrived: at least 1.
  [[nodiscard]] std::ptrdiff_t needed(std::size_t workers) const {
    // A share such as 0.9 is not exact, so 0.9 * 10 may be a little above 9.
    const double count = share * static_cast<double>(workers);
    return std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(std::ceil(count * (1 - 1e-9))));
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const {
    return share >= 1 ? std::optional{own_step} : std::nullopt;
  }
  [[nodiscard]] std::optional<Step> max_lag() const {
    return share >= 1 ? std::optional<Step>{0} : std::nullopt;
  }

  static Quorum parse(SpecReader& reader) {
    const std::string text = reader.text("q", "0.9");
    const auto share = parse_number(text);
    if (share && *share > 0 && *share <= 1) return {*share};
    reader.refuse("q=" + text + ": valid: a number above 0 and at most 1");
    return {};
  }
  [[nodiscard]] std::string options() const { return "q=" + print_number(share); }

  bool operator==(const Quorum&) const = default;
};

}  // namespace starling::barrier
