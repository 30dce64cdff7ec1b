/// Prints the result and the summary of a flow that has ended, for `starling run` and `starling
/// submit --flow`.
#pragma once

#include <cstdint>
#include <optional>
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
  /// An error message for each file that was skipped. It names the file and the reason.
  std::vector<std::string> skipped = {};
};

/// How many parts of a flow on nodes were recomputed, because their outputs were lost.
struct RecomputedParts {
  std::uint64_t parts = 0;
  /// True if there may be more: the coordinator has changed, and the former one's count is lost.
  bool is_minimum = false;
};

/// How many workers of a flow on nodes left or died before its end.
struct LostWorkers {
  std::uint64_t left = 0;
  std::uint64_t died = 0;
};

/// How a flow ran that has ended, without its result.
struct RunInfo {
  std::string flow;
  /// The name of its job on a cluster; empty in one process.
  std::string job = {};
  /// All files that the flow has read.
  std::vector<std::string> inputs;
  /// All workers that took part.
  std::uint64_t workers = 0;
  double seconds = 0;
  std::vector<StageSummary> stages = {};
  /// Absent in one process.
  std::optional<LostWorkers> lost = std::nullopt;
  std::optional<RecomputedParts> recomputed = std::nullopt;
  /// The folder of the result; empty if only its first lines were kept.
  std::string output = {};
};

/// Returns the summary for stderr: the stages as a table, the figures, and where the result is.
/// Pure function.
[[nodiscard]] std::string run_text(const RunInfo& info, const RunOutcome& outcome);

/// Returns a text like "0 parts computed again" or "at least 3 parts computed again". Pure
/// function.
[[nodiscard]] std::string print(const RecomputedParts& recomputed);

/// Returns one JSON object. Pure function.
[[nodiscard]] std::string run_json(const RunInfo& info, const RunOutcome& outcome);

/// Writes to stderr which files were skipped, and why.
void print_skipped(const std::vector<std::string>& reasons);

/// Writes the summary to stderr unless `is_quiet`, and the first lines or, if `is_json`, one JSON
/// object to stdout. Returns the exit code.
[[nodiscard]] Result<int> report_result(const RunInfo& info, const RunOutcome& outcome,
                                        bool is_json, bool is_quiet);

}  // namespace starling::program
