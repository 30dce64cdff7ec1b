/// Prints the comparison of a live run with its simulations, as a table or as JSON. Pure functions;
/// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/twin/twin.hpp"

namespace starling::program {

/// A live run, the job that simulates it, and the comparison of their figures.
struct TwinReport {
  /// The simulated job. It ends when the live run ended, and its steps have the overhead that was
  /// measured in the live run.
  const SimJob& job;
  /// True if the live run made all its steps; false if its time or its target ended it.
  bool completed = false;
  /// The figures of the live run.
  RunFigures live;
  /// The comparison of each figure.
  std::vector<FigureComparison> figures;
};

/// Returns true if each figure of the live run is within its bounds.
[[nodiscard]] bool do_all_agree(const TwinReport& report);

/// Returns two lines about the live run, a table with a row for each figure, and a line that says
/// whether all figures are within their bounds.
[[nodiscard]] std::string twin_table(const TwinReport& report);

/// Returns one JSON object on one line.
[[nodiscard]] std::string twin_json(const TwinReport& report);

}  // namespace starling::program
