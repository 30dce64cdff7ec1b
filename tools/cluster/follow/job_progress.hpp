/// Computes how far a job has come, and how long it still takes. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

struct JobProgress {
  /// The median of the workers' steps.
  core::Step step = 0;
  /// Passes over the training data; nothing if no node knows yet how many steps one takes.
  std::optional<double> data_epoch = std::nullopt;
  /// The part of the job that is done, from 0 to 1; nothing if neither steps nor time limit the
  /// job.
  std::optional<double> done_share = std::nullopt;
  std::optional<double> updates_per_s = std::nullopt;
  /// The seconds left; nothing if they are not known.
  std::optional<double> remaining_s = std::nullopt;
};

/// `now_ms` is the time in ms since 1970, UTC.
[[nodiscard]] JobProgress progress_of(const JobSnapshot& job, std::int64_t now_ms);

/// Returns "running, epoch 1.2, step 120 of 500, loss 0.31, 350 updates/s, 12 s left".
[[nodiscard]] std::string progress_text(const JobSnapshot& job, std::int64_t now_ms);

/// Returns "12 s", "3 min 20 s", "5 h 10 min".
[[nodiscard]] std::string time_text(double seconds);

}  // namespace starling::program
