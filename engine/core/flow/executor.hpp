/// The part of the role Flow that every member has, the coordinator too: fetches what tasks read,
/// has the member's driver run the tasks, serves the outputs that are here, on this member, to
/// other members, and gathers the results of actions. The driver is an actor or a test, not the
/// flow's program. Not thread-safe.
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
  void on(const FlowContext& context, const PiecesRead& read);
  void on(const FlowContext& context, const PieceStored& stored);
  void on(const FlowContext& context, const ReleaseStage& release);
  void on(const FlowContext& context, const ProgramReturned&);

  void on(const FlowContext& context, MemberId from, const TaskOrder& order);
  void on(const FlowContext& context, MemberId from, const StageHolders& holders);
  void on(const FlowContext& context, MemberId from, const PieceRequest& request);
  void on(const FlowContext& context, MemberId from, const PieceChunks& answer);
  void on(const FlowContext& context, MemberId from, const ActionEnd& end);
  void on(const FlowContext& context, MemberId from, const ForgetActions& forget);

  [[nodiscard]] const Actions& actions() const { return actions_; }
  /// True if an action from `before` on may read the outputs of this stage. Says nothing about
  /// outputs that are results: they stay in any case.
  [[nodiscard]] bool keeps(const StageName& stage, ActionId before) const;
  /// True if no task waits or runs.
  [[nodiscard]] bool is_idle() const { return tasks_.empty(); }

 private:
  struct TaskState {
    bool is_last_attempt = false;
    bool runs = false;
    /// The pieces that the task reads and that are not here yet.
    std::set<PieceName> missing = {};
    /// All pieces that the task reads.
    std::vector<PieceName> reads = {};
  };
  /// The piece of an output of another member that one part of the next stage reads; the whole
  /// output if it is not shuffled (flow::OutputForm).
  struct Piece {
    /// StorePiece::stage, which can differ from the stage in the piece's name.
    StageName stage;
    /// The member that has the piece, and the next chunk to ask for.
    MemberId holder = 0;
    std::uint32_t next_chunk = 0;
    /// True once the last chunk of the piece has come.
    bool has_last_chunk = false;
    /// The number of the request that fetches the piece (PieceRequest::fetch); 0 if there is none.
    std::uint32_t fetch = 0;
    bool is_here = false;
    /// The tasks that read the piece.
    std::set<PartName> tasks = {};
    /// True if the piece is part of a result.
    bool is_result = false;
  };
  using Pieces = std::map<PieceName, Piece>;
  /// The pieces that one other member was asked for.
  struct Fetch {
    MemberId holder = 0;
    /// Some may be here already, or be needed no more.
    std::vector<PieceName> pieces;
    /// The number of received chunks that the driver has not stored yet.
    std::size_t storing = 0;
  };
  enum class Availability { here, coming, gone };

  [[nodiscard]] FlowState state() const;
  void send_progress(const FlowContext& context) const;
  void report(const FlowContext& context, const PartName& task, TaskOutcome outcome,
              std::string error = {}, const flow::TaskCounts& counts = {}) const;

  /// Looks for an output that `task` reads or, if `task` is null, that is part of a result; fetches
  /// it if another member has it. Returns `here` if it is here, `coming` if it is being fetched,
  /// and `gone` if no member is known to have it.
  Availability request_output(const FlowContext& context, const Action& action,
                              const Action::Read& read, flow::Part part, const PartName* task);
  void start_if_ready(const FlowContext& context, const PartName& name, TaskState& task);
  /// Ends a task that does not run, and reports why.
  void give_up(const FlowContext& context, const PartName& task, TaskOutcome outcome,
               const std::string& error = {});
  /// Forgets a piece that cannot be fetched or stored, and gives up the tasks that read it.
  void lose(const FlowContext& context, const PieceName& name, TaskOutcome outcome,
            const std::string& error = {});
  /// Forgets that a task needs its pieces, and drops those that no one needs.
  void release(const FlowContext& context, const PartName& task, const TaskState& state);
  void drop_if_unused(const FlowContext& context, Pieces::iterator piece);
  /// Asks for pieces in `queues_`, as far as FlowOptions::fetches_max allows.
  void fetch_next(const FlowContext& context);
  /// Stores a chunk that has come, or gives the piece up.
  void take(const FlowContext& context, MemberId from, std::uint32_t fetch,
            const PieceChunk& chunk);
  /// Called by on(PieceStored), which then continues the fetch.
  void on_stored(const FlowContext& context, const PieceStored& stored);
  /// If all chunks that have come are stored, asks for the chunks of `fetch` that are left.
  void continue_fetch(const FlowContext& context, std::uint32_t fetch);
  /// If the coordinator has ended the program's present action: fetches the missing outputs of the
  /// action's result or, if no output is missing, ends the action here.
  void gather(const FlowContext& context);
  void end_action(const FlowContext& context, std::string error);
  void drop_outputs(const FlowContext& context, const StageName& first, const StageName& end);

  const FlowOptions& options_;
  const MemberId self_;
  ConfigurationPtr configuration_;
  bool is_stopped_ = false;
  Actions actions_;
  ProgramPosition position_;
  /// The first action that is not forgotten.
  ActionId forgotten_before_ = 0;
  std::map<PartName, TaskState> tasks_;
  /// The outputs that are here.
  std::set<PartName> outputs_;
  /// The stages whose outputs stay when their action is forgotten: those that the program keeps,
  /// and those that are results.
  std::set<StageName> kept_;
  std::set<StageName> results_;
  /// Kept stages that the program needs no more, and how many actions it had begun when it released
  /// them.
  std::map<StageName, ActionId> released_;
  /// By stage: the member that has the output of each part.
  std::map<StageName, std::vector<MemberId>> holders_;
  /// By action that the coordinator has ended: its error, empty if it has not failed.
  std::map<ActionId, std::string> ends_;
  Pieces pieces_;
  /// By holder: the pieces that this member has yet to ask it for.
  std::map<MemberId, std::deque<PieceName>> queues_;
  std::map<std::uint32_t, Fetch> fetches_;
  std::uint32_t last_fetch_ = 0;
  /// How many parts of the result are not here yet. gather() counts them.
  std::size_t results_missing_ = 0;
};

}  // namespace starling::core
