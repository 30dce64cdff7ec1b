/// Returns the results of simulations as a table, JSON, CSV and plots. These do not depend on the
/// machine, nor on how long a simulation took. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/plot.hpp"
#include "starling/tools/sim/runs.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// The runs of each barrier of a job, in the job's order.
using Simulated = std::vector<SimRuns>;

/// Returns a table for people, with a row for each barrier. Each figure is a mean over the seeds,
/// except min and max, which are the extremes of all seeds. The mean steps have their 95 %
/// confidence interval.
[[nodiscard]] std::string sim_table(const SimJob& job, const Simulated& simulated);

/// Returns one JSON array on one line, an object for each barrier.
[[nodiscard]] std::string sim_json(const SimJob& job, const Simulated& simulated);

/// Returns CSV, a row for each barrier and seed.
[[nodiscard]] std::string sim_csv(const SimJob& job, const Simulated& simulated);

/// Returns the names of the plots that sim_plots() will return for a job.
[[nodiscard]] std::vector<std::string> sim_plot_names(const SimJob& job);
/// Returns the plots of a job's runs.
[[nodiscard]] std::vector<Plot> sim_plots(const SimJob& job, const Simulated& simulated);

/// Describes a job in one or more lines: "1000 workers, central, steps exp:100ms, 40s, seed 1".
[[nodiscard]] std::string describe(const SimJob& job);

}  // namespace starling::program
