/// The figures of exchanges in the reports of `starling sim`. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "starling/tools/sim/runs.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// Describes the exchange of a job: "exchange gossip, 100 MB; latency const:50us, 1250 MB/s a
/// port". Requires: the job has an exchange.
[[nodiscard]] std::string describe_exchange(const SimJob& job);

/// The columns of tables, and the cells of the runs of one barrier. Requires: the job has an
/// exchange.
[[nodiscard]] std::vector<std::string> exchange_columns(const SimJob& job);
[[nodiscard]] std::vector<std::string> exchange_cells(const SimJob& job, const SimRuns& runs);

/// The columns of CSV files, and the cells of one run.
[[nodiscard]] std::vector<std::string> exchange_csv_columns();
[[nodiscard]] std::vector<std::string> exchange_csv_cells(const SimRun& run);

/// Adds the settings of the exchange, and the figures over the runs of one barrier.
void add_exchange(nlohmann::ordered_json& json, const SimJob& job, const SimRuns& runs);
/// Adds the figures of one run.
void add_exchange(nlohmann::ordered_json& json, const SimRun& run);

}  // namespace starling::program
