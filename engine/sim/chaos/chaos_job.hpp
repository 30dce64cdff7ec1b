/// The job that a chaos run trains: its members and its updates. The values of a range show which
/// updates were applied to it (see invariant_checker.hpp). Immutable; thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {

class ChaosJob {
 public:
  explicit ChaosJob(const Scenario& scenario);

  /// Returns the member that runs on node `id`: a peer, or a worker, a server or the coordinator.
  [[nodiscard]] core::Member member(NodeId id, core::Incarnation incarnation) const;

  /// Returns the options of a member. If `is_initial`, it is in the job from the beginning;
  /// otherwise it asks the members `seeds` to let it join.
  [[nodiscard]] core::MemberOptions options(core::Member self, bool is_initial,
                                            std::vector<core::MemberId> seeds) const;

  /// Returns how the job deals its samples: so few that the workers take them several times. In
  /// half of the scenarios the workers end after a number of epochs.
  [[nodiscard]] core::DealOptions deal() const;

  /// Returns the plan of every step: it reads all ranges.
  [[nodiscard]] const std::vector<core::RangeRows>& plan() const noexcept { return plan_; }

  /// Returns the update of `samples` samples that the incarnation with index `incarnation_index`
  /// computes in the step after `step`. In every range, the update adds 1 to the incarnation's
  /// count of steps, and the step's number to the incarnation's sum of steps. It also changes the
  /// last row of the range, which depends on the order of all updates.
  [[nodiscard]] core::Update update(std::size_t incarnation_index, core::Step step,
                                    std::size_t samples) const;
  /// The buckets in which workers hand over an update; empty if they hand over whole updates only.
  [[nodiscard]] const std::vector<core::Bucket>& buckets() const noexcept { return buckets_; }
  /// Returns the parts of update(incarnation_index, step, samples) from the first range of bucket
  /// `bucket` on.
  [[nodiscard]] core::EarlyParts parts(std::size_t incarnation_index, core::Step step,
                                       std::size_t samples, std::size_t bucket) const;

 private:
  Scenario scenario_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> initial_states_;
  core::ConfigurationPtr first_configuration_;
  std::vector<core::RangeRows> plan_;
  std::vector<core::Bucket> buckets_;
};

}  // namespace starling::sim
