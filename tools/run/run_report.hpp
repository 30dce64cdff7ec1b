/// Prints the result and the summary of a flow that has ended, for `starling run` and `starling
/// submit --flow`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/run/stage_log.hpp"

namespace starling::program {

/// The result of a flow.
struct RunOutcome {
  /// The number of lines of the result, and the first of them.
  std::uint64_t lines = 0;
  std::vector<std::string> first_lines;
  /// Numbers of the summary, by name.
  std::vector<std::pair<std::string, double>> figures;
};

/// A flow that has ended.
struct RunReport {
  std::string flow;
  /// The name of its job on a cluster; empty in one process.
  std::string job = {};
  std::vector<std::string> inputs;
  /// The reasons why files were skipped, each of which begins with a file's path.
  std::vector<std::string> skipped = {};
  std::uint64_t workers = 0;
  double seconds = 0;
  /// Empty on a cluster.
  std::vector<StageSummary> stages = {};
  /// The folder of the result; empty if only its first lines were kept.
  std::string output = {};
};

/// Returns the summary for stderr: the stages as a table, the figures, and where the result is.
/// Pure function.
[[nodiscard]] std::string run_text(const RunReport& report, const RunOutcome& outcome);

/// Returns one JSON object. Pure function.
[[nodiscard]] std::string run_json(const RunReport& report, const RunOutcome& outcome);

/// Writes the summary to stderr unless `is_quiet`, and the first lines or, if `is_json`, one JSON
/// object to stdout. Returns the exit code.
[[nodiscard]] Result<int> report_result(const RunReport& report, const RunOutcome& outcome,
                                        bool is_json, bool is_quiet);

}  // namespace starling::program
