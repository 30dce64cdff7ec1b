#pragma once

#include <algorithm>

#include "starling/barrier/rules/ssp.hpp"

namespace starling::barrier {

/// The probabilistic form of SSP of FluentPS (Yao et al., CLUSTER 2019): only the fastest worker
/// pauses if it is more than `staleness` steps ahead of the slowest, and only with `probability`.
/// A paused worker waits until it is at most `staleness` steps ahead. With probability 1 this is
/// SSP, because a bound on the fastest worker bounds all; with 0 it is ASP. Each push draws a new
/// random number (Pace::chance), which decides whether the worker pauses then.
///
/// Over a sample, a worker pauses if it is the fastest that it sees. With probability 1 this is not
/// SSP over the sample: a worker passes, however far behind others are, if it sees a faster one.
struct Fluent {
  static constexpr std::string_view name = "fluent";
  static constexpr std::string_view summary = "as ssp, but only the fastest waits, by chance";

  /// The largest lag, in steps, at which every worker passes.
  Step staleness = 4;
  /// The probability with which the fastest worker pauses at a larger lag.
  double probability = 0.5;

  /// Returns true if a paused worker may go on, which is decided as in SSP.
  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return Ssp{staleness}.admits(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const {
    return Ssp{staleness}.floor(own_step);
  }
  /// Returns `unlimited`, which stands for infinity, if no worker ever pauses; nullopt if the
  /// fastest worker may pass by chance, however far ahead it is.
  [[nodiscard]] std::optional<Step> max_lag() const {
    if (probability <= 0 || staleness >= unlimited) return unlimited;
    return probability >= 1 ? std::optional{staleness} : std::nullopt;
  }

  /// Returns nullopt even with probability 1, because a worker that sees a faster one passes with
  /// any lag.
  [[nodiscard]] std::optional<Step> max_lag_in_sample() const {
    return max_lag() >= unlimited ? std::optional{unlimited} : std::nullopt;
  }

  [[nodiscard]] Step run_to(const Pace& own, std::span<const Pace> others) const {
    const Step lowest = *floor(own.step);
    const bool is_within_staleness =
        std::ranges::all_of(others, [&](const Pace& other) { return other.step >= lowest; });
    if (is_within_staleness) return own.step + 1;
    if (own.waits) return own.step;
    return is_fastest(own, others) && own.chance < probability ? own.step : own.step + 1;
  }

  static Fluent parse(SpecReader& reader) {
    Fluent rule;
    rule.staleness = std::min(reader.count_or_inf("s", rule.staleness), unlimited);
    rule.probability = reader.number("p", rule.probability, 0, 1);
    return rule;
  }
  [[nodiscard]] std::string options() const {
    return Ssp{staleness}.options() + ",p=" + print_number(probability);
  }

  bool operator==(const Fluent&) const = default;
};

}  // namespace starling::barrier
