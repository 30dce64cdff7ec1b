/// The job of a run of deterministic simulation testing: its members, and updates that show which
/// of them have been applied (see invariant_checker.hpp). Immutable once made; any thread.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {

class ChaosJob {
 public:
  explicit ChaosJob(const Scenario& scenario);

  /// Returns node `id` as a member: a peer, or a worker, a server or the coordinator.
  [[nodiscard]] core::Member role(NodeId id, core::Incarnation incarnation) const;

  /// Returns the options of a founder if `founding`, else of a member that asks the members `seeds`
  /// to be taken in.
  [[nodiscard]] core::MemberOptions<double> options(core::Member self, bool founding,
                                                    std::vector<core::MemberId> seeds) const;

  /// Returns the plan of every step, which reads all ranges.
  [[nodiscard]] const std::vector<core::RangeRows>& plan() const noexcept { return plan_; }

  /// Returns the update of the step after `step` of the incarnation `slot`: in every range it adds
  /// 1 to the incarnation's count, and the step's number to its sum. The row after those of all
  /// incarnations shows the order of all updates.
  [[nodiscard]] core::Update update(std::size_t slot, core::Step step) const;

 private:
  Scenario scenario_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> start_;
  core::ConfigurationPtr first_;
  std::vector<core::RangeRows> plan_;
};

}  // namespace starling::sim
