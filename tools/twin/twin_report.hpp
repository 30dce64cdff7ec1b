/// Prints the comparison of a live run with its simulations. Plain functions of values.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/sim/sim_job.hpp"
#include "starling/tools/twin/twin.hpp"

namespace starling::program {

/// A live run, the job that was simulated beside it, and their comparison.
struct Twins {
  /// As it was simulated: the live run's end and its overhead a step are in it.
  const SimJob& job;
  bool completed = false;
  TwinRun live;
  std::vector<Compared> compared;
};

/// True where all figures are inside.
[[nodiscard]] bool agree(const Twins& twins);

/// Returns a line on the run, a row for each figure, and the verdict.
[[nodiscard]] std::string twin_table(const Twins& twins);

/// One JSON object on one line.
[[nodiscard]] std::string twin_json(const Twins& twins);

}  // namespace starling::program
