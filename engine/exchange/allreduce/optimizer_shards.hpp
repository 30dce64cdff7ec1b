/// The optimizer's state in shards, of which each worker has some (ZeRO, stage 1: Rajbhandari et
/// al., arXiv 1910.02054): each range has a primary, which sums the updates of the range and
/// applies the sum, and a backup, which applies the sum, too, and sends the new values to all. The
/// backup is on another node, unless all workers are on one. Plain values and pure functions;
/// thread-safe to read and call.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::core {

/// The shards of the workers of one configuration. A Rank is a worker's position among them in the
/// order of their ids.
class OptimizerShards {
 public:
  using Rank = collective::Rank;

  explicit OptimizerShards(const Configuration& configuration);

  [[nodiscard]] Rank primary(RangeId range) const {
    return static_cast<Rank>(range % backups_.size());
  }
  /// Returns the primary itself if there is no other worker.
  [[nodiscard]] Rank backup(RangeId range) const { return backups_[primary(range)]; }
  /// True if the worker is to have the state of the optimizer for the range.
  [[nodiscard]] bool keeps_state(Rank worker, RangeId range) const {
    return primary(range) == worker || backup(range) == worker;
  }
  /// By primary: its backup.
  [[nodiscard]] const std::vector<Rank>& backups() const { return backups_; }

 private:
  std::vector<Rank> backups_;
};

/// Returns the primary of a range; nullopt if the configuration has no worker.
[[nodiscard]] std::optional<MemberId> primary_of(const Configuration& configuration, RangeId range);

/// The rounds of sharded_schedule().
inline constexpr std::uint32_t gradients_round = 0;
inline constexpr std::uint32_t sum_round = 1;
inline constexpr std::uint32_t values_round = 2;

/// Returns the schedule of the sums: chunk c, whose ranges have worker c as their primary, goes
/// from all to worker c, which adds; the sum goes to the backup of c, which sends the new values
/// to all.
///   3 rounds, and (2n-1)/n of the vector per port.
/// When any worker has the new values of a range, the range's primary and backup have the state
/// that belongs to these values.
[[nodiscard]] collective::Schedule sharded_schedule(std::span<const collective::Rank> backups);

}  // namespace starling::core
