/// The counts of one node's members in a flow, for the client that follows it. Plain values.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/flow/plan/progress.hpp"

namespace starling::core {

/// All stages with the same description, of all actions so far.
struct StageTotals {
  flow::StageDescription description;
  /// How many such stages are to run by the plans of all actions that have begun.
  std::uint64_t runs = 0;
  /// The counts include the parts that members of this node have computed again.
  flow::TaskCounts counts;
  /// The time from the beginning of the first part on this node to the end of the last one, summed
  /// over all runs.
  double seconds = 0;
  static constexpr auto fields(auto& m) {
    return std::tie(m.description, m.runs, m.counts, m.seconds);
  }
};

/// A stage of which members of this node have begun a part in the latest action.
struct StageStatus {
  /// Its number among the stages that the action runs, from 1; 0 if it is a stage of an earlier
  /// action that the latest one computes again in part, because outputs of it were lost.
  std::uint32_t number = 0;
  flow::StageDescription description;
  /// A bit for each part that members of this node have computed and whose output is not lost: part
  /// p is bit p % 64 of word p / 64.
  std::vector<std::uint64_t> parts_done = {};
  flow::TaskCounts counts = {};
  /// The time from the beginning of its first part on this node until now, or until the end of its
  /// last part.
  double seconds = 0;
  static constexpr auto fields(auto& m) {
    return std::tie(m.number, m.description, m.parts_done, m.counts, m.seconds);
  }
};

/// Counts the work of the members of a flow on one node.
struct FlowReport {
  NodeId node = 0;
  /// How many actions the flow has begun on this node, and how many stages the last of them runs.
  std::uint32_t actions = 0;
  std::uint32_t stages = 0;
  std::vector<StageStatus> current = {};
  std::vector<StageTotals> totals = {};
  /// How many parts were computed again while a member here was the coordinator, because their
  /// outputs were lost.
  std::uint64_t parts_again = 0;
  /// True if a member here has become the coordinator after another. It does not know which parts
  /// were computed before, so some of them may be missing in `parts_again`.
  bool has_taken_over = false;
  static constexpr auto fields(auto& m) {
    return std::tie(m.node, m.actions, m.stages, m.current, m.totals, m.parts_again,
                    m.has_taken_over);
  }
};

}  // namespace starling::core
