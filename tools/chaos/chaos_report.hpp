/// The report of a campaign of deterministic simulation testing, or of one scenario that was run
/// again. Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/engine/sim/chaos/chaos.hpp"

namespace starling::program {

/// The totals of many runs.
struct ChaosTotals {
  /// The number of seeds that were run, and of those that were asked for.
  std::uint64_t runs = 0;
  std::uint64_t asked = 1;
  bool interrupted = false;
  /// The sums of the counts of all runs.
  sim::ChaosReport sum = {};
  /// Jobs that ended with an error in scenarios that allow this.
  std::uint64_t gave_up = 0;
  double wall_s = 0;

  void add(const sim::ChaosReport& report);
};

/// A scenario in which an invariant was violated.
struct ChaosFailure {
  std::uint64_t seed = 0;
  sim::Scenario scenario;
  sim::ChaosReport report = {};
  /// True if the scenario was shrunk from the one that the seed draws.
  bool is_shrunk = false;
  /// The file of the scenario; empty if it could not be written.
  std::string file = {};
};

/// Returns "starling VERSION, commit COMMIT".
[[nodiscard]] std::string build_text();

[[nodiscard]] std::string chaos_text(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

/// Returns one JSON object.
[[nodiscard]] std::string chaos_json(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

}  // namespace starling::program
