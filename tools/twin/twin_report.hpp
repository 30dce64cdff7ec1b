/// Prints the comparison of a live run with its simulations. Plain functions of values; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/twin/twin.hpp"

namespace starling::program {

/// A live run, the job that was simulated beside it, and their comparison.
struct TwinReport {
  /// The simulated job, with the end and the overhead per step of the live run.
  const SimJob& job;
  /// True if the live run made all its steps, and did not end by its time.
  bool completed = false;
  TwinRun live;
  std::vector<FigureComparison> figures;
};

/// True if all figures of the live run are within their bounds.
[[nodiscard]] bool do_all_agree(const TwinReport& report);

/// Returns a line about the run, a row for each figure, and a line that says whether they agree.
[[nodiscard]] std::string twin_table(const TwinReport& report);

/// Returns one JSON object on one line.
[[nodiscard]] std::string twin_json(const TwinReport& report);

}  // namespace starling::program
