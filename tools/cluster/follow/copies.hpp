/// How many copies of a job's model its nodes hold. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

/// Returns how many copies of each range a job with these settings wants.
[[nodiscard]] std::size_t copies_wanted(const wire::JobSettings& settings);

/// Returns the copies of the range that has fewest, counting owners on nodes that `nodes` has as
/// live.
[[nodiscard]] std::size_t copies_held(const JobSnapshot& job,
                                      const std::vector<core::NodeRecord>& nodes);

/// Returns the copies that are being made, where an owner does not hold its range yet. Owners whose
/// nodes have not answered count as holding theirs.
[[nodiscard]] std::size_t copies_incomplete(const JobSnapshot& job);

/// Reports changes in the number of copies.
class CopyWatch {
 public:
  /// Returns a line where the number of copies that the configuration lacks has changed since the
  /// last call, also to none; else empty.
  [[nodiscard]] std::string news(const core::Configuration& now, std::size_t wanted);

 private:
  std::size_t missing_ = 0;
};

}  // namespace starling::program
