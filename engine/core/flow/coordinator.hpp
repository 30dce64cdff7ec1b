/// The part of a Flow that the coordinator has: it gives tasks to members, and says when an action
/// has ended. All that it knows, except how often a part has failed, comes from the members, so
/// that another member can take its place. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/flow/executor.hpp"
#include "starling/engine/core/flow/messages.hpp"

namespace starling::core {

class FlowCoordinator {
 public:
  /// `executor` is that of the same member.
  FlowCoordinator(const FlowOptions& options, const FlowExecutor& executor)
      : options_(options), executor_(executor) {}

  void on_configuration(const FlowContext& context, const ConfigurationPtr& next,
                        const ConfigurationPtr& former);
  void on(const FlowContext& context, MemberId from, const FlowState& state);
  void on(const FlowContext& context, MemberId from, const FlowProgress& progress);
  void on(const FlowContext& context, MemberId from, const TaskReport& report);
  void on(const FlowContext& context, MemberId from, const OutputLost& lost);

 private:
  struct MemberState {
    ProgramPosition position;
    std::uint32_t slots = 0;
    /// How many tasks it has.
    std::uint32_t tasks = 0;
    /// It runs another program.
    bool is_refused = false;
  };
  /// The action that the members compute.
  struct Current {
    ActionPtr action;
    flow::Scheduler scheduler;
    bool has_ended = false;
    std::string error = {};
  };

  /// Goes on to the first action that has not ended on all members, and gives out tasks.
  void advance(const FlowContext& context);
  void begin(const FlowContext& context, ActionPtr action);
  void schedule(const FlowContext& context);
  void end_if_complete(const FlowContext& context);
  void fail(const FlowContext& context, ActionId action, const std::string& error);
  /// Returns the member for a task: of those that can take one, a member that has what the task
  /// reads, or else the one with the most free slots. Returns nothing if no member can.
  [[nodiscard]] std::optional<MemberId> choose(const flow::TaskId* task) const;
  [[nodiscard]] bool can_take(const MemberState& member) const;
  void add_results(const FlowContext& context, MemberId id, const MemberState& member);
  void add_output(const FlowContext& context, const PartName& output, MemberId holder);
  void remove_output(const PartName& output, MemberId holder);
  /// If a stage of the current action is complete, tells all members where its outputs are.
  void announce(const FlowContext& context, flow::StageId stage) const;
  [[nodiscard]] StageHolders holders_of(flow::StageId stage) const;

  const FlowOptions& options_;
  const FlowExecutor& executor_;
  ConfigurationPtr configuration_;
  /// The members that have sent their state.
  std::map<MemberId, MemberState> members_;
  /// By output: the members that have it. By task: the member that runs it.
  std::map<PartName, std::set<MemberId>> outputs_;
  std::map<PartName, MemberId> tasks_;
  std::map<ActionId, std::string> failures_;
  std::optional<Current> current_;
  ActionId forgotten_ = 0;
  bool has_ended_ = false;
};

}  // namespace starling::core
