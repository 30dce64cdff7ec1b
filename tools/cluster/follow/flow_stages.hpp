/// The stages of a flow on nodes, as the reports of all its nodes show them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/tools/run/run_report.hpp"

namespace starling::program {

/// A stage of the latest action.
struct RunningStage {
  /// The number of the action in the flow, that of the stage in the action, from 1, and how many
  /// stages the action has.
  std::uint32_t action = 0;
  std::uint32_t number = 0;
  std::uint32_t stages = 0;
  flow::StageDescription description;
  flow::Part parts_done = 0;
  flow::TaskCounts counts;
  /// The time since its first part began.
  double seconds = 0;
};

/// Not thread-safe.
class FlowStages {
 public:
  /// Takes the latest report of a node. Keeps the last report of a node that is gone.
  void receive(wire::FlowReport report);

  /// True once a member has begun an action.
  [[nodiscard]] bool has_begun() const;
  /// Returns the first incomplete stage of the latest action or, if all stages that have begun are
  /// complete, the last of them; nullopt if no stage has begun. A part counts as done only if it is
  /// on one of `nodes`, because the parts of a node that is gone are lost.
  [[nodiscard]] std::optional<RunningStage> running(const std::set<wire::NodeId>& nodes) const;
  /// Returns the stages in the order of their first run. The work of a node counts even if the node
  /// is gone. The time of a stage is that of the node on which it took longest.
  [[nodiscard]] std::vector<StageSummary> summaries() const;
  /// Returns how many parts were computed again, as the members that were coordinators counted
  /// them.
  [[nodiscard]] RecomputedParts recomputed_parts() const;

 private:
  std::map<wire::NodeId, wire::FlowReport> reports_;
};

/// Returns a text like "action 2, stage 1 of 3, text | map | sort_by: 5/16 parts, ..."
[[nodiscard]] std::string print(const RunningStage& stage);

}  // namespace starling::program
