/// A line about a stage of a flow that runs. Pure function; thread-safe.
#pragma once

#include <string>

#include "starling/engine/flow/plan/progress.hpp"

namespace starling::program {

/// Returns a line like "text | map | sort_by: 5/16 parts, 3.2e+06 records/s, 12.0 MiB shuffled, 1.0
/// MiB spilled, stage ends in 12 s". `seconds` is the time that the stage has run; the time left is
/// estimated from it and from the parts that are done, and shown from 1 s on.
[[nodiscard]] std::string stage_line(const flow::StageDescription& stage, flow::Part parts_done,
                                     const flow::TaskCounts& counts, double seconds);

}  // namespace starling::program
