/// The job of a run of deterministic simulation testing: its members, and its updates, whose sums
/// show which of them have been applied (see invariant_checker.hpp). Immutable; any thread.
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

  /// Returns the options of a member that is there from the beginning if `is_founder`, else of a
  /// member that asks the members `seeds` to join.
  [[nodiscard]] core::MemberOptions<double> options(core::Member self, bool is_founder,
                                                    std::vector<core::MemberId> seeds) const;

  /// Returns the plan of every step, which reads all ranges.
  [[nodiscard]] const std::vector<core::RangeRows>& plan() const noexcept { return plan_; }

  /// Returns the update of the step after `step` of the incarnation with slot `slot`. In every
  /// range it adds 1 to the incarnation's count of steps, and the step's number to its sum of
  /// steps. It also changes the last row of the range, which depends on the order of all updates.
  [[nodiscard]] core::Update update(std::size_t slot, core::Step step) const;

 private:
  Scenario scenario_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> start_;
  core::ConfigurationPtr first_;
  std::vector<core::RangeRows> plan_;
};

}  // namespace starling::sim
