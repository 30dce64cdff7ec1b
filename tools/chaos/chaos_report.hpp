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
  /// Seeds that were run, and seeds that were asked for.
  std::uint64_t runs = 0;
  std::uint64_t asked = 1;
  bool interrupted = false;
  sim::ChaosReport sum = {};
  /// Jobs that ended with an error, where the scenario allows it.
  std::uint64_t gave_up = 0;
  double wall_s = 0;

  void add(const sim::ChaosReport& report);
};

/// A scenario in which an invariant broke.
struct ChaosFailure {
  std::uint64_t seed = 0;
  sim::Scenario scenario;
  sim::ChaosReport report = {};
  /// True where it was shrunk from the scenario that the seed drew.
  bool is_cut_down = false;
  /// The file of the scenario; empty where it could not be written.
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
