/// Counts what the members of a flow on one node compute, for programs that follow the job. The
/// counts do not affect the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "starling/actor/wire/control.hpp"
#include "starling/engine/core/flow/messages.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/flow/plan/plan.hpp"

namespace starling::actor {

/// Thread-safe. Times are those of the job's clock on this node.
class FlowCounter {
 public:
  /// If there are more different descriptions of stages, the rest count as "other stages".
  static constexpr std::size_t totals_max = 256;

  /// Call this when the program of a member has begun an action. Members begin the same actions, so
  /// only the first call for each action counts.
  void begin(const core::Action& action, const flow::Plan& plan);
  /// Call begin_task() when a member here begins to compute a task, and end_task() with the task's
  /// counts once the member has its output.
  void begin_task(const core::PartName& task, core::Time now);
  void end_task(const core::PartName& task, const flow::TaskCounts& counts, core::Time now);
  /// Call this when a member here has been excluded: its outputs are gone.
  void on_outputs_lost();
  /// Call this when the coordinator is a member here, and has learned that a part was computed.
  void on_part_done(const core::PartName& task);
  /// Call this when a member here has become the coordinator in place of another member.
  void on_takeover();

  /// Returns the counts so far, without the node's id.
  [[nodiscard]] core::FlowReport report() const;

 private:
  /// A stage of the latest action.
  struct CurrentStage {
    /// As in core::StageStatus.
    std::uint32_t number = 0;
    flow::StageDescription description;
    /// The position of its description in `totals_`.
    std::size_t total = 0;
    std::set<flow::Part> parts_done = {};
    flow::TaskCounts counts = {};
    /// When the first task began here; absent if none has begun.
    std::optional<core::Time> begin = std::nullopt;
    /// When a task last ended here; the same as `begin` until one has ended.
    core::Time end{};
    /// The parts that the coordinator knows to have been computed.
    std::set<flow::Part> known_done = {};
  };

  /// Returns the stage of a task of the latest action; null if the task belongs to another action.
  [[nodiscard]] CurrentStage* find(const core::PartName& task);
  [[nodiscard]] std::size_t total_of(const flow::StageDescription& description);
  [[nodiscard]] static double seconds_of(const CurrentStage& stage);

  mutable std::mutex mutex_;
  /// How many actions have begun, and the stages of the last one.
  core::ActionId actions_ = 0;
  std::vector<CurrentStage> stages_;
  /// The sums over all actions; their `seconds` do not include the latest action.
  std::vector<core::StageTotals> totals_;
  /// As in core::FlowReport.
  std::uint64_t parts_again_ = 0;
  bool has_taken_over_ = false;
};

}  // namespace starling::actor
