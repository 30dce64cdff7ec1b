#pragma once

#include "starling/barrier/rules/bsp.hpp"

namespace starling::barrier {

/// Bulk synchronous parallel with aggressive synchronization (A-BSP: Wang et al., "Aggressive
/// Synchronization with Partial Processing for Iterative ML Jobs on Clusters", MIDDLEWARE 2018).
/// Workers pass as under BSP, but nobody waits long: when the first worker has computed its batch,
/// the others hand in what they have computed of their batches. Each begins its next step with the
/// samples that it did not get to.
struct Absp {
  static constexpr std::string_view name = "absp";
  static constexpr std::string_view summary = "as bsp, but all hand in when the first is ready";

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return Bsp{}.admits(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const { return own_step; }
  [[nodiscard]] std::optional<Step> max_lag() const { return 0; }

  static Absp parse(SpecReader&) { return {}; }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Absp&) const = default;
};

}  // namespace starling::barrier
