/// The part of a Flow that every member has: it fetches what tasks read, lets the driver run them,
/// serves the outputs that are here to other members, and gathers the results of actions. Not
/// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/flow/messages.hpp"

namespace starling::core {

class FlowExecutor {
 public:
  FlowExecutor(const FlowOptions& options, MemberId self) : options_(options), self_(self) {}

  /// Tells a coordinator that is new to this member what the member has. Gives up tasks that read
  /// from members which are gone.
  void on_configuration(const FlowContext& context, const ConfigurationPtr& next,
                        const ConfigurationPtr& former);
  /// Begins no further task.
  void stop(const FlowContext& context);

  void on(const FlowContext& context, const BeginAction& begin);
  void on(const FlowContext& context, const TaskEnded& ended);
  void on(const FlowContext& context, const PieceRead& read);
  void on(const FlowContext& context, const PieceStored& stored);
  void on(const FlowContext& context, const ReleaseStage& release);
  void on(const FlowContext& context, const ProgramReturned&);

  void on(const FlowContext& context, MemberId from, const TaskOrder& order);
  void on(const FlowContext& context, MemberId from, const StageHolders& holders);
  void on(const FlowContext& context, MemberId from, const PieceRequest& request);
  void on(const FlowContext& context, MemberId from, const PieceChunk& chunk);
  void on(const FlowContext& context, MemberId from, const ActionEnd& end);
  void on(const FlowContext& context, MemberId from, const ForgetActions& forget);

  [[nodiscard]] const Actions& actions() const { return actions_; }
  /// True if the outputs of a stage stay when the actions before `before` are forgotten, although
  /// they are not results.
  [[nodiscard]] bool keeps(const StageName& stage, ActionId before) const;
  /// True if no task waits or runs.
  [[nodiscard]] bool is_idle() const { return tasks_.empty(); }

 private:
  struct TaskState {
    bool is_last_attempt = false;
    bool runs = false;
    /// The pieces that it reads and that are not here yet.
    std::set<PieceName> missing = {};
    /// All pieces that it reads.
    std::vector<PieceName> reads = {};
  };
  /// A piece of an output of another member.
  struct Piece {
    StageName stage;
    /// The member that has it, and the next chunk to ask for.
    MemberId holder = 0;
    std::uint32_t next_chunk = 0;
    bool is_asked = false;
    bool is_here = false;
    /// The tasks that read it. True: it is part of a result.
    std::set<PartName> tasks = {};
    bool is_result = false;
  };
  enum class Need { here, coming, gone };

  [[nodiscard]] FlowState state() const;
  void send_progress(const FlowContext& context) const;
  void report(const FlowContext& context, const PartName& task, TaskOutcome outcome,
              std::string error = {}, const flow::TaskCounts& counts = {}) const;

  /// Looks for an output that a task or, if `task` is null, a result reads; fetches it if another
  /// member has it.
  Need need(const FlowContext& context, const Action& action, const Action::Read& read,
            flow::Part part, const PartName* task);
  void start_if_ready(const FlowContext& context, const PartName& name, TaskState& task);
  /// Ends a task that does not run, and reports why.
  void give_up(const FlowContext& context, const PartName& task, TaskOutcome outcome,
               const std::string& error = {});
  /// Forgets a piece that cannot be had, and gives up the tasks that read it.
  void lose(const FlowContext& context, const PieceName& name, TaskOutcome outcome,
            const std::string& error = {});
  /// Forgets that a task needs its pieces, and drops those that no one needs.
  void release(const FlowContext& context, const PartName& task, const TaskState& state);
  void fetch_next(const FlowContext& context);
  void ask(const FlowContext& context, const PieceName& name, Piece& piece);
  /// Ends the program's action, once its result is here.
  void gather(const FlowContext& context);
  void end_action(const FlowContext& context, std::string error);

  const FlowOptions& options_;
  const MemberId self_;
  ConfigurationPtr configuration_;
  bool is_stopped_ = false;
  Actions actions_;
  ProgramPosition position_;
  ActionId forgotten_ = 0;
  std::map<PartName, TaskState> tasks_;
  /// The outputs that are here.
  std::set<PartName> outputs_;
  /// The stages whose outputs stay when their action is forgotten: those that the program keeps,
  /// and those that are results.
  std::set<StageName> kept_;
  std::set<StageName> results_;
  /// Kept stages that the program needs no more, and how many actions it had begun then.
  std::map<StageName, ActionId> released_;
  std::map<StageName, std::vector<MemberId>> holders_;
  std::map<ActionId, std::string> ends_;
  std::map<PieceName, Piece> pieces_;
  /// The pieces that are to be fetched, and how many are being fetched.
  std::deque<PieceName> queue_;
  std::size_t fetches_ = 0;
  /// How many parts of the result are not here yet, since gather() has looked.
  std::size_t results_missing_ = 0;
};

}  // namespace starling::core
