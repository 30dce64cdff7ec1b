/// Prints simulations as a table, JSON, CSV and plots. Nothing in them depends on the machine or on
/// how long the simulation took. Plain functions of values; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/plot.hpp"
#include "starling/tools/sim/runs.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// The runs of each barrier of a job, in the job's order.
using Simulated = std::vector<SimRuns>;

/// Returns a table for people, a row for each barrier. Each figure is a mean over the seeds, that
/// of the mean steps with its 95 % confidence interval; min and max are the extremes of all seeds.
[[nodiscard]] std::string sim_table(const SimJob& job, const Simulated& simulated);

/// Returns one JSON array on one line, an object for each barrier.
[[nodiscard]] std::string sim_json(const SimJob& job, const Simulated& simulated);

/// Returns CSV, a row for each barrier and seed.
[[nodiscard]] std::string sim_csv(const SimJob& job, const Simulated& simulated);

/// Returns the names of the plots that sim_plots() will return for a job.
[[nodiscard]] std::vector<std::string> sim_plot_names(const SimJob& job);
/// Returns the plots of a job's runs.
[[nodiscard]] std::vector<Plot> sim_plots(const SimJob& job, const Simulated& simulated);

/// Describes a job in one line or more: "1000 workers, central, steps exp:100ms, 40s".
[[nodiscard]] std::string describe(const SimJob& job);

}  // namespace starling::program
