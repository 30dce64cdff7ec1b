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
  /// `executor` is the executor of the same member.
  FlowCoordinator(const FlowOptions& options, const FlowExecutor& executor)
      : options_(options), executor_(executor) {}

  void on_configuration(const FlowContext& context, const ConfigurationPtr& next,
                        const ConfigurationPtr& former);
  /// Gives tasks that take long to second members.
  void on_timer(const FlowContext& context);
  void on(const FlowContext& context, MemberId from, const FlowState& state);
  void on(const FlowContext& context, MemberId from, const FlowProgress& progress);
  void on(const FlowContext& context, MemberId from, const TaskReport& report);
  void on(const FlowContext& context, MemberId from, const OutputLost& lost);

 private:
  struct MemberState {
    ProgramPosition position;
    /// How many tasks it runs at a time; 0 if it takes no tasks.
    std::uint32_t slots = 0;
    /// How many tasks it has.
    std::uint32_t tasks = 0;
    /// True if it runs another program.
    bool is_refused = false;
  };
  /// A task that was given out.
  struct Runs {
    bool is_last_attempt = false;
    /// True if no further member gets it: two run it, or one of two has failed.
    bool has_speculative_run = false;
    /// By member that runs the task: since when it does.
    std::map<MemberId, Time> since = {};
  };
  /// The action that the members compute.
  struct Current {
    ActionPtr action;
    flow::Scheduler scheduler;
    /// By stage: how long its parts took.
    std::map<flow::StageId, std::vector<Time>> durations = {};
    /// By task that has failed: the members on which it has.
    std::map<PartName, std::set<MemberId>> failed_on = {};
    /// True once the members were told that the action has ended. `error` is empty if the action
    /// has not failed.
    bool has_ended = false;
    std::string error = {};
  };

  /// Goes on to the first action that has not ended on all members, and gives out tasks.
  void advance(const FlowContext& context);
  void begin(const FlowContext& context, ActionPtr action);
  void schedule(const FlowContext& context);
  void end_if_complete(const FlowContext& context);
  void fail(const FlowContext& context, ActionId action, const std::string& error);
  /// Returns the member for a task: of the members that can take a task, one that has an output
  /// that this task reads, or else the one with the most free slots. Returns nullopt if no member
  /// can take a task. A task that has failed goes to a member on which it has not, if there is one,
  /// even if that has no free slot: the other member's disk may be full.
  [[nodiscard]] std::optional<MemberId> choose(const flow::TaskId& task) const;
  /// Returns the member with the fewest tasks that runs tasks of the current action and is not in
  /// `excluded`; nullopt if there is none.
  [[nodiscard]] std::optional<MemberId> other_member(const std::set<MemberId>& excluded) const;
  /// Returns the member with the most free slots among the members that can take a task and do not
  /// run the task of `runs` (null: among all that can take a task); nullopt if there is none.
  [[nodiscard]] std::optional<MemberId> least_busy_except(const Runs* runs) const;
  void give(const FlowContext& context, const PartName& task, Runs& runs, MemberId to);
  /// Forgets that the member runs the task. Returns how long the member has run it; nullopt if it
  /// does not run it.
  std::optional<Time> end_run(const FlowContext& context, const PartName& task, MemberId member);
  /// Gives tasks that take long to second members, now or when on_timer() is called.
  void run_speculatively(const FlowContext& context);
  [[nodiscard]] bool has_inputs(flow::StageId stage) const;
  /// Returns how long a task of the stage runs before it is given to a second member; nullopt while
  /// too few parts are done to say.
  [[nodiscard]] std::optional<Time> speculation_delay(flow::StageId stage) const;
  /// A run of a task of the current action has brought no output and will bring none, and no member
  /// has the task's output. Unless another member runs the task too, it is computed again.
  void on_lost(const PartName& task);
  [[nodiscard]] bool is_of_current(const PartName& task) const;
  /// True if it is a task of the current action, and no member has its output.
  [[nodiscard]] bool is_wanted(const PartName& task) const;
  /// True if the member runs tasks of the current action.
  [[nodiscard]] bool computes(const MemberState& member) const;
  /// True if it also has a free slot.
  [[nodiscard]] bool can_take(const MemberState& member) const {
    return computes(member) && member.tasks < member.slots;
  }
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
  /// By output: the members that have it.
  std::map<PartName, std::set<MemberId>> outputs_;
  std::map<PartName, Runs> tasks_;
  std::map<ActionId, std::string> failures_;
  std::optional<Current> current_;
  /// All actions before this one are forgotten.
  ActionId forgotten_before_ = 0;
  /// When a timer will call on_timer(); absent if none is set.
  std::optional<Time> wakes_at_;
  /// True once the members were told that the programs of all of them have returned; false again
  /// while a member that has joined runs its program.
  bool has_ended_ = false;
};

}  // namespace starling::core
