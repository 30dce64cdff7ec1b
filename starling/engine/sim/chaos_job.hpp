/// The job of a run of deterministic simulation testing: who its members are, and updates that tell
/// which of them are in (see invariant_checker.hpp). Immutable once made; any thread.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/member_core.hpp"
#include "starling/engine/sim/scenario.hpp"

namespace starling::sim {

class ChaosJob {
 public:
  explicit ChaosJob(const Scenario& scenario);

  /// What node `id` is: a peer; a worker, a server, or the coordinator.
  [[nodiscard]] core::Member role(NodeId id, core::Incarnation incarnation) const;

  /// Returns the options of a founder if `founding`, else of a member that asks the members `seeds`
  /// to be taken in.
  [[nodiscard]] core::MemberOptions<double> options(core::Member self, bool founding,
                                                    std::vector<core::MemberId> seeds) const;

  /// Every step reads everything.
  [[nodiscard]] const std::vector<core::RangeRows>& plan() const noexcept { return plan_; }

  /// The step after `step` of the incarnation `slot`: in every range its count rises by 1, and its
  /// sum by the step's number. The row behind those of all lives tells the order of all updates.
  [[nodiscard]] core::Update update(std::size_t slot, core::Step step) const;

 private:
  Scenario scenario_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> start_;
  core::ConfigurationPtr first_;
  std::vector<core::RangeRows> plan_;
};

}  // namespace starling::sim
