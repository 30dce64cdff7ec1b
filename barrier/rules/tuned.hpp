#pragma once

#include <optional>
#include <string>
#include <utility>

#include "starling/barrier/rules/ssp.hpp"

namespace starling::barrier {

/// A barrier that tunes itself: SSP over a random sample. After each step, each worker adjusts the
/// staleness s and the sample size beta of its own barrier, so that something that it measures
/// reaches a target, or is as large as possible (Measure). The rule holds the target and the
/// limits; tuner.hpp has the control law for s and beta.
///
/// admits(), floor() and max_lag() are those of the largest s that the tuner may choose.
struct Tuned {
  static constexpr std::string_view name = "tuned";
  static constexpr std::string_view summary = "s and beta follow waiting, staleness or progress";

  enum class Measure {
    /// The share of a worker's time that it waits at the barrier; a number in (0, 1). The target is
    /// that of workers in the middle: those ahead wait for longer, those behind for less.
    waiting,
    /// The mean lag, in steps, of the others behind a worker that arrives at the barrier; one
    /// that is not behind counts as 0.
    staleness,
    /// The predicted fall of the loss per second. It has no target: s and beta move to where it is
    /// largest.
    progress,
  };
  Measure measure = Measure::waiting;
  /// The target: a share from 0 to 1 under `waiting`, a number of steps under `staleness`; unused
  /// under `progress`.
  double target = 0.05;

  /// The largest sample size.
  static constexpr std::size_t sample_max = 64;
  /// The largest target of staleness, and the largest s under such a target. Under the other
  /// measures, s is 0.
  static constexpr Step target_max = 32;
  static constexpr Step staleness_max = 64;

  [[nodiscard]] Step largest_staleness() const {
    return measure == Measure::staleness ? staleness_max : 0;
  }

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return Ssp{largest_staleness()}.admits(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const {
    return Ssp{largest_staleness()}.floor(own_step);
  }
  [[nodiscard]] std::optional<Step> max_lag() const { return largest_staleness(); }

  /// Refuses text without a target or with two, and targets that no barrier can meet.
  static Tuned parse(SpecReader& reader);
  [[nodiscard]] std::string options() const;

  bool operator==(const Tuned&) const = default;
};

}  // namespace starling::barrier
