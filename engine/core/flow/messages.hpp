/// The messages and the driver's effects and inputs of the role Flow.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "starling/engine/core/flow/action.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/role/role.hpp"
#include "starling/engine/core/slice.hpp"
#include "starling/engine/core/type_list.hpp"
#include "starling/engine/flow/plan/progress.hpp"

namespace starling::core {

class Flow;

/// Bytes of records. They travel as a slice of 8-byte elements, of which the last may be padded
/// with zeros.
struct RecordBytes {
  std::uint32_t size = 0;
  Slice words;

  static RecordBytes copy_of(std::span<const std::byte> bytes);
  [[nodiscard]] std::span<const std::byte> get() const { return words.bytes().first(size); }
  [[nodiscard]] bool is_well_formed() const {
    return !words.rows && size <= words.count * word_bytes &&
           words.count * word_bytes < size + word_bytes &&
           (words.empty() || words.buffer->element_bytes() == word_bytes);
  }
  static constexpr std::size_t word_bytes = 8;
  static constexpr auto fields(auto& m) { return std::tie(m.size, m.words); }
};

// --- messages -----------------------------------------------------------------------------------

/// Member to coordinator, when the member learns that the receiver is the coordinator: what the
/// member has and does.
struct FlowState {
  ProgramPosition position;
  /// How many tasks it runs at a time; 0 if it takes no tasks.
  std::uint32_t slots = 0;
  /// The outputs that the member has, except the results of actions that have ended there.
  std::vector<PartName> outputs;
  /// The tasks that the member runs, or will run once it has the pieces that they read.
  std::vector<PartName> tasks;
  /// The actions that have failed, as far as the member knows.
  std::vector<ActionFailure> failures;

  static constexpr std::string_view name = "flow-state";
  static constexpr auto fields(auto& m) {
    return std::tie(m.position, m.slots, m.outputs, m.tasks, m.failures);
  }
};
/// Member to coordinator, when its program has begun an action or has returned, when an action has
/// ended there, and when the number of its slots changes.
struct FlowProgress {
  ProgramPosition position;
  std::uint32_t slots = 0;

  static constexpr std::string_view name = "flow-progress";
  static constexpr auto fields(auto& m) { return std::tie(m.position, m.slots); }
};
/// Coordinator to member: run this task.
struct TaskOrder {
  PartName task;
  /// True if the action fails when this run of the task fails.
  bool is_last_attempt = false;

  static constexpr std::string_view name = "task-order";
  static constexpr auto fields(auto& m) { return std::tie(m.task, m.is_last_attempt); }
};
/// Coordinator to all: a stage of an action is complete, and these members have the outputs.
struct StageHolders {
  StageName stage;
  /// By part of the stage: a member that has its output.
  std::vector<MemberId> holders;

  static constexpr std::string_view name = "stage-holders";
  static constexpr auto fields(auto& m) { return std::tie(m.stage, m.holders); }
};
enum class TaskOutcome : std::uint8_t {
  done,
  /// A function of the task threw, or its records could not be stored.
  failed,
  /// The member has not run the task, or has dropped it: an output that the task reads is gone, or
  /// the member's program is not in the task's action.
  lacks_input,
};
constexpr TaskOutcome last_of(TaskOutcome) { return TaskOutcome::lacks_input; }
/// Member to coordinator: what became of a task.
struct TaskReport {
  PartName task;
  /// The name of the output of the task.
  PartName output;
  TaskOutcome outcome = TaskOutcome::done;
  /// If it has failed: why.
  std::string error;
  flow::TaskCounts counts;

  static constexpr std::string_view name = "task-report";
  static constexpr auto fields(auto& m) {
    return std::tie(m.task, m.output, m.outcome, m.error, m.counts);
  }
};
/// Member to coordinator: `holder` does not have this output, although it should.
struct OutputLost {
  PartName output;
  MemberId holder = 0;

  static constexpr std::string_view name = "output-lost";
  static constexpr auto fields(auto& m) { return std::tie(m.output, m.holder); }
};
/// Member to a member that has the outputs: asks for the next chunks of pieces, in this order. A
/// member asks again when it has stored the chunks before.
struct PieceRequest {
  static constexpr std::size_t pieces_max = 1024;

  /// A number that the asking member chooses. The answer repeats it.
  std::uint32_t fetch = 0;
  std::vector<PieceName> pieces;
  /// The next chunk of the first piece, from 0. The others begin with chunk 0.
  std::uint32_t chunk = 0;

  static constexpr std::string_view name = "piece-request";
  static constexpr auto fields(auto& m) { return std::tie(m.fetch, m.pieces, m.chunk); }
};
/// Some bytes of a piece. A large piece travels as several chunks.
struct PieceChunk {
  PieceName piece;
  std::uint32_t chunk = 0;
  bool is_last = false;
  /// True if the sender does not have the output.
  bool is_missing = false;
  /// Why the sender cannot read the output; empty if it can, or if it does not have the output.
  std::string error = {};
  RecordBytes bytes = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.piece, m.chunk, m.is_last, m.is_missing, m.error, m.bytes);
  }
};
/// Answers a PieceRequest, with one chunk of each of the first pieces that it asks for, of at least
/// one piece.
struct PieceChunks {
  std::uint32_t fetch = 0;
  std::vector<PieceChunk> chunks;

  static constexpr std::string_view name = "piece-chunks";
  static constexpr auto fields(auto& m) { return std::tie(m.fetch, m.chunks); }
};
/// Coordinator to all: an action has ended; `error` is empty if it has not failed.
struct ActionEnd {
  ActionId action = 0;
  std::string error;

  static constexpr std::string_view name = "action-end";
  static constexpr auto fields(auto& m) { return std::tie(m.action, m.error); }
};
/// Coordinator to all: the actions before `before` have ended everywhere, so no one needs their
/// outputs, except those that are results or kept.
struct ForgetActions {
  ActionId before = 0;

  static constexpr std::string_view name = "forget-actions";
  static constexpr auto fields(auto& m) { return std::tie(m.before); }
};
/// Coordinator to all: the programs of all members have returned.
struct FlowEnd {
  static constexpr std::string_view name = "flow-end";
};

using FlowMessages =
    TypeList<FlowState, FlowProgress, TaskOrder, StageHolders, TaskReport, OutputLost, PieceRequest,
             PieceChunks, ActionEnd, ForgetActions, FlowEnd>;

// --- effects for the driver ---------------------------------------------------------------------

/// Run this task; answered by TaskEnded. The driver has all outputs and pieces that the task reads.
struct RunTask {
  PartName task;
  bool is_last_attempt = false;
};
/// Read what a member asks for; answered by PiecesRead.
struct ReadPieces {
  MemberId reader = 0;
  PieceRequest request;
};
/// Add a chunk to a piece; answered by PieceStored. Chunk 0 begins the piece anew.
struct StorePiece {
  std::uint32_t fetch = 0;
  /// The stage that makes the output, in the action whose task or result reads the piece. If the
  /// stage is kept, the output's name may be that of an earlier action.
  StageName stage;
  PieceChunk chunk;
};
/// This piece is not read any more.
struct DropPiece {
  PieceName piece;
};
/// Keep this piece as the whole output.
struct KeepPiece {
  PieceName piece;
};
/// Drop this output: nothing can read it any more.
struct DropOutput {
  PartName output;
};
/// A member is gone: it reads no more pieces.
struct DropReader {
  MemberId reader = 0;
};
/// No task of the actions before `before` will run.
struct DropActions {
  ActionId before = 0;
};
/// The program's action has ended. If it gathers and `error` is empty, all outputs of its last
/// stage are here.
struct ActionEnded {
  ActionId action = 0;
  std::string error;
};
/// On the coordinator: a part was computed.
struct PartDone {
  PartName task;
  flow::TaskCounts counts;
};
/// The programs of all members have returned: this member may end.
struct FlowEnded {};

using FlowOutputs = TypeList<RunTask, ReadPieces, StorePiece, DropPiece, KeepPiece, DropOutput,
                             DropReader, DropActions, ActionEnded, PartDone, FlowEnded>;

// --- the driver's inputs ------------------------------------------------------------------------

/// The program needs the result of its next action.
struct BeginAction {
  ActionPtr action;
};
/// The result of RunTask.
struct TaskEnded {
  PartName task;
  /// Empty if the task has returned its output.
  std::string error;
  flow::TaskCounts counts;
};
/// The result of ReadPieces: what this member sends to `reader`.
struct PiecesRead {
  MemberId reader = 0;
  PieceChunks chunks;
};
/// The result of StorePiece.
struct PieceStored {
  /// PieceRequest::fetch.
  std::uint32_t fetch = 0;
  PieceName piece;
  std::uint32_t chunk = 0;
  bool is_last = false;
  /// Why the chunk could not be stored; empty if it was.
  std::string error;
};
/// The program needs the kept outputs of this stage no more.
struct ReleaseStage {
  StageName stage;
};
/// The program has returned, and begins no more actions.
struct ProgramReturned {};

using FlowInputs =
    TypeList<BeginAction, TaskEnded, PiecesRead, PieceStored, ReleaseStage, ProgramReturned>;

/// The lists of RoleContext::scratch; there are none.
struct FlowScratch {};
using FlowContext = RoleContext<FlowMessages, FlowOutputs, FlowScratch>;

struct FlowOptions {
  using Role = Flow;
  /// An action fails if a part of it has failed this many times under one coordinator. Above 0.
  std::uint32_t attempts_max = 2;
  /// How many tasks this member runs at a time.
  std::uint32_t slots = 1;
  /// How many requests for pieces this member has in flight at a time. Above 0.
  std::size_t fetches_max = 8;
  /// A task is given to a second member once half of the parts of its stage are done and it has run
  /// for `speculation_factor` times the median time of these parts, and at least for
  /// `speculation_after_min`.
  double speculation_factor = 2;
  Time speculation_after_min = std::chrono::milliseconds{500};
};

}  // namespace starling::core
