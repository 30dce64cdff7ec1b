/// Reports how far a job is, and how long it still takes. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

struct JobProgress {
  /// The median over the workers.
  core::Step step = 0;
  /// Passes over the training data; nothing where no node knows yet how long one is.
  std::optional<double> epoch = std::nullopt;
  /// 0 to 1; nothing where neither steps nor time end it.
  std::optional<double> share = std::nullopt;
  std::optional<double> updates_per_s = std::nullopt;
  /// The seconds left; nothing where they are not known.
  std::optional<double> left_s = std::nullopt;
};

/// `now_ms`: ms since 1970, UTC.
[[nodiscard]] JobProgress progress_of(const JobSnapshot& job, std::int64_t now_ms);

/// "running, epoch 1.2, step 120 of 500, loss 0.31, 350 updates/s, 12 s left".
[[nodiscard]] std::string progress_text(const JobSnapshot& job, std::int64_t now_ms);

/// "12 s", "3 min 20 s", "5 h 10 min".
[[nodiscard]] std::string time_text(double seconds);

}  // namespace starling::program
