/// Asks nodes for what a program needs to follow a job.
#pragma once

#include <optional>

#include "starling/tools/cluster/follow/cluster_snapshot.hpp"
#include "starling/tools/cluster/keys/access.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// A job as nodes run it.
struct RunOnNodes {
  /// Its `evaluator` is null.
  RecordedRun run;
  /// As JobNotes::has_normalised_error.
  bool has_normalised_error = false;
};

/// Asks the nodes that answered for `snapshot`, one after the other. `job` and its `settings` are
/// those of this process. If `is_resumed`, also asks how samples were dealt before the job resumed,
/// and with how many updates and steps it resumed. Blocking. Prints an error and returns nullopt if
/// no node sends a valid answer. Returns an Error if settings that only this process uses do not
/// fit the job.
[[nodiscard]] Result<std::optional<RunOnNodes>> describe_run_on_nodes(
    Access& access, const ClusterSnapshot& snapshot, wire::JobId id, const Job& job,
    const Settings& settings, bool is_resumed);

}  // namespace starling::program
