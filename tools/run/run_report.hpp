/// Prints the result and the summary of a flow that has ended, for `starling run`. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starling/tools/registry/flow.hpp"
#include "starling/tools/run/stage_log.hpp"

namespace starling::program {

/// A flow that has ended.
struct RunReport {
  std::string flow;
  std::vector<std::string> inputs;
  std::uint64_t workers = 0;
  double seconds = 0;
  std::vector<StageSummary> stages;
  /// The folder of the result; empty if only its first lines were kept.
  std::string output;
};

/// Returns the summary for stderr: the stages as a table, the figures, and where the result is.
[[nodiscard]] std::string run_text(const RunReport& report, const FlowContext& result);

/// Returns one JSON object.
[[nodiscard]] std::string run_json(const RunReport& report, const FlowContext& result);

}  // namespace starling::program
