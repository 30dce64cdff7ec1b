/// The report of `starling chaos`: of the simulations of many seeds, or of one scenario that was
/// replayed. Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/engine/sim/chaos/chaos.hpp"

namespace starling::program {

/// The totals of many runs.
struct ChaosTotals {
  /// The number of seeds that were run, and the number that the user asked for.
  std::uint64_t runs = 0;
  std::uint64_t seeds_requested = 1;
  /// True if an interrupt ended the runs before all seeds were run.
  bool interrupted = false;
  /// The counts of a run, each summed over all runs.
  sim::ChaosReport sum = {};
  /// The number of jobs that ended with an error in a scenario that allows it.
  std::uint64_t gave_up = 0;
  double wall_s = 0;

  /// Adds the counts of a run.
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

/// Returns the report for people.
[[nodiscard]] std::string chaos_text(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

/// Returns the report as one JSON object.
[[nodiscard]] std::string chaos_json(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

}  // namespace starling::program
