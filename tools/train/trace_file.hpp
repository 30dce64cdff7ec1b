/// Writes the file of `--trace`: what each worker did when, as a timeline that Perfetto and
/// chrome://tracing show. Its format is the Trace Event Format of Chrome. Any thread, one at a
/// time.
#pragma once

#include <string>

#include "starling/actor/job/timeline.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Replaces the file `path` as a whole. Requires: the job has ended.
[[nodiscard]] Result<void> write_trace(const std::string& path, const ResolvedJob& job,
                                       const actor::Timeline& timeline);

/// Returns the warning that a trace lacks intervals; empty if it has all.
[[nodiscard]] std::string dropped_text(const actor::Timeline& timeline);

}  // namespace starling::program
