/// The records of a flow that a member has: the outputs of its tasks, and pieces of the outputs of
/// other members. It executes effects of a Flow for the driver. Not thread-safe, but the tasks that
/// it has made may run on any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "starling/engine/core/flow/messages.hpp"
#include "starling/engine/flow/plan/plan.hpp"
#include "starling/engine/flow/plan/task.hpp"

namespace starling::core {

class OutputStore {
 public:
  /// The chunks of one message have at most `chunk_bytes` together; above 0.
  OutputStore(std::shared_ptr<flow::TaskMemory> memory, std::size_t chunk_bytes)
      : memory_(std::move(memory)), chunk_bytes_(chunk_bytes) {}

  /// The program has begun an action.
  void begin(ActionPtr action, flow::Plan plan);

  struct RunnableTask {
    flow::StagePtr stage;
    flow::Task task;
  };
  /// Returns the task that `run` asks for. Requires: all outputs and pieces that the task reads are
  /// here.
  [[nodiscard]] RunnableTask make_task(const RunTask& run, const std::function<bool()>& is_stopped);
  /// Keeps the output of a task.
  void put(const PartName& task, flow::Output output);

  /// Reads the next chunks, at most `chunk_bytes` bytes together. A chunk is marked as missing if
  /// the output is not here, and has an error if the output cannot be read.
  [[nodiscard]] PieceChunks execute(const ReadPieces& read);
  [[nodiscard]] PieceStored execute(const StorePiece& store);
  void execute(const DropPiece& drop) { pieces_.erase(drop.piece); }
  void execute(const KeepPiece& keep);
  void execute(const DropOutput& drop);
  void execute(const DropReader& drop);
  void execute(const DropActions& drop);

  /// Returns the outputs of the last stage of an action. Requires: they are here.
  [[nodiscard]] std::vector<flow::Output> results(ActionId action) const;

 private:
  struct StageState {
    flow::StagePtr stage;
    /// The file to which its tasks spill; null until there is one.
    std::shared_ptr<flow::SpillFile> file;
  };
  struct ActionState {
    ActionPtr action;
    std::vector<StageState> stages;
  };
  struct StoredOutput {
    flow::Output output;
    flow::OutputForm form;
  };
  /// A piece that is being received, or has been. `writer` uses `task`; both are null once the
  /// piece is complete.
  struct Piece {
    std::unique_ptr<flow::Task> task;
    std::unique_ptr<flow::PieceWriter> writer;
    /// The bytes that have come of a block that is not complete yet.
    std::vector<std::byte> partial;
    /// Set once the piece is complete.
    flow::Output output;
    flow::OutputForm form;
  };
  /// A piece that is being sent to a member.
  struct Reading {
    std::unique_ptr<flow::PieceReader> reader;
    /// Bytes that were read, and how many of them were sent.
    std::vector<std::byte> rest;
    std::size_t sent = 0;
    bool is_at_end = false;
    PieceChunk last_chunk;
  };

  [[nodiscard]] StageState& stage(const StageName& name);
  [[nodiscard]] const std::shared_ptr<flow::SpillFile>& file_of(StageState& stage);
  PieceChunk read_chunk(MemberId reader, const PieceName& piece, std::uint32_t number,
                        std::size_t bytes_max);
  static void read_next(Reading& reading, std::uint32_t number, std::size_t bytes_max);
  static void add_bytes(Piece& piece, std::span<const std::byte> bytes);

  std::shared_ptr<flow::TaskMemory> memory_;
  const std::size_t chunk_bytes_;
  std::map<ActionId, ActionState> actions_;
  std::map<PartName, StoredOutput> outputs_;
  std::map<PieceName, Piece> pieces_;
  std::map<std::pair<MemberId, PieceName>, Reading> readings_;
};

}  // namespace starling::core
