/// Counts the copies of a job's model that its nodes hold. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

/// Returns how many copies of each range a job with these settings is to have.
[[nodiscard]] std::size_t copies_wanted(const wire::JobSettings& settings);

/// Returns the number of copies of the range that has the fewest. An owner counts if `nodes` lists
/// its node as live.
[[nodiscard]] std::size_t copies_held(const JobSnapshot& job,
                                      const std::vector<core::NodeRecord>& nodes);

/// Returns how many copies are still being made: their owners do not hold the ranges yet. An owner
/// whose node has not answered counts as if it held all of its ranges.
[[nodiscard]] std::size_t copies_incomplete(const JobSnapshot& job);

/// Notices changes in the number of copies.
class CopyMonitor {
 public:
  /// Returns a line of text if the number of copies that the latest configuration lacks has changed
  /// since the last call; else an empty string.
  [[nodiscard]] std::string describe_change(const core::Configuration& latest, std::size_t wanted);

 private:
  /// Copies that the configuration of the last call lacked.
  std::size_t missing_ = 0;
};

}  // namespace starling::program
