/// Counts the replicas of the ranges of a job's model that nodes hold. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/tools/cluster/follow/cluster_snapshot.hpp"

namespace starling::program {

/// Returns how many replicas of each range a job with these settings should have: its replication
/// factor.
[[nodiscard]] std::size_t replicas_wanted(const wire::JobSettings& settings);

/// Returns the exchange of a job with these settings.
[[nodiscard]] std::string exchange_of(const wire::JobSettings& settings);

/// Returns the smallest number of owners on live nodes that the latest configuration assigns to any
/// range, whether they hold it yet or not. `nodes` says which nodes are live. Returns 0 if no
/// configuration is known or the job's exchange has no owners.
[[nodiscard]] std::size_t fewest_live_owners(const JobSnapshot& job,
                                             const std::vector<core::NodeRecord>& nodes);

/// Returns how many replicas of ranges are still being transferred: the configuration assigns them
/// to owners that do not hold them yet. An owner whose node has not answered counts as if it held
/// all of its ranges.
[[nodiscard]] std::size_t replicas_in_transfer(const JobSnapshot& job);

/// Returns the number of ranges of the job's model; 0 if no node knows it yet.
[[nodiscard]] std::size_t range_count(const JobSnapshot& job);

/// Returns how many workers hold all ranges of the model. In a job whose exchange has no owners,
/// each worker does, unless it has just joined.
[[nodiscard]] std::size_t whole_copies(const JobSnapshot& job);

/// Takes the hashes of the copies of workers that have all ended. Returns true if the hashes are
/// equal. Returns nullopt if there are none, if one is unknown, because the exchange does not keep
/// copies equal, or if they are of different rounds.
[[nodiscard]] std::optional<bool> have_equal_copies(const std::vector<core::CopyHash>& copies);

/// Notices changes in the number of missing replicas from one configuration to the next.
class ReplicaMonitor {
 public:
  /// Returns a message if the range with the fewest replicas lacks more or fewer of them than at
  /// the last call; else an empty string. `wanted` is the number of replicas that each range should
  /// have.
  [[nodiscard]] std::string describe_change(const core::Configuration& latest, std::size_t wanted);

 private:
  /// The number of missing replicas at the last call.
  std::size_t missing_ = 0;
};

}  // namespace starling::program
