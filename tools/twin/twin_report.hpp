/// Returns the comparison of a live run with its simulations as a table or JSON. Pure functions;
/// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/twin/twin.hpp"

namespace starling::program {

/// A live run, the job that was simulated beside it, and their comparison.
struct TwinReport {
  /// The simulated job. It has the end of the live run, and the overhead of its steps.
  const SimJob& job;
  /// True if the live run made all its steps; false if its time or its target
  /// ended it.
  bool completed = false;
  TwinRun live;
  std::vector<FigureComparison> figures;
};

/// True if all figures of the live run are within their bounds.
[[nodiscard]] bool do_all_agree(const TwinReport& report);

/// Returns two lines about the live run, a table with a row for each figure, and a line that says
/// whether all figures are within their bounds.
[[nodiscard]] std::string twin_table(const TwinReport& report);

/// Returns one JSON object on one line.
[[nodiscard]] std::string twin_json(const TwinReport& report);

}  // namespace starling::program
