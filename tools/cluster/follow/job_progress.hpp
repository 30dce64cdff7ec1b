/// Computes the progress of a job, and how long it still takes. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

struct JobProgress {
  /// The median of the workers' steps.
  core::Step step = 0;
  /// The passes over the training data that the median worker has made; nothing if no node knows
  /// yet how many steps a pass takes.
  std::optional<double> data_epoch = std::nullopt;
  /// The share that is done, from 0 to 1: of the steps of all workers or of the job's time limit,
  /// whichever share is larger; nothing if neither is limited.
  std::optional<double> done_share = std::nullopt;
  /// The updates of all workers a second: in the last few seconds while the job runs, and then from
  /// its start to its last step.
  std::optional<double> updates_per_s = std::nullopt;
  /// The estimated seconds until the job ends; nothing if they are not known.
  std::optional<double> remaining_s = std::nullopt;
};

/// Returns the progress of a job. `now_ms` is the time in ms since 1970, UTC.
[[nodiscard]] JobProgress progress_of(const JobSnapshot& job, std::int64_t now_ms);

/// Returns a text like "running, epoch 1.2, step 120 of 500, loss 0.31, 350 updates/s, 12 s left",
/// or "running for 12 s" for a flow.
[[nodiscard]] std::string progress_text(const JobSnapshot& job, std::int64_t now_ms);

}  // namespace starling::program
