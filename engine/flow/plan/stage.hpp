/// Stages. A stage is a chain of narrow operations, fused into one loop over each of its parts.
/// At the end of the chain, the records are shuffled, kept, or given to an action. Each part is one
/// task.
///
/// A stage has a description, which is plain data, and a function. All nodes of a job run the same
/// program, so they build the same stages: a coordinator names a task by its stage's id and its
/// part, and only the description is ever compared or sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace starling::flow {

/// The number of a part of a data set, from 0.
using Part = std::uint32_t;

/// The result of one task. Only the functions of stages know its type: the function of a stage that
/// reads it was compiled with the function of the stage that made it.
using Output = std::shared_ptr<const void>;

class Task;
class KeptOutputs;

/// Reads one piece of an output as bytes. Not thread-safe.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  /// Returns the bytes of the next records; empty after the last. Throws TaskFailure if the records
  /// cannot be read.
  virtual std::vector<std::byte> next() = 0;
};

/// Makes an output, of which only one piece is present, from the bytes that a PieceReader returned.
/// Not thread-safe.
class PieceWriter {
 public:
  virtual ~PieceWriter() = default;
  /// Adds what one call of PieceReader::next() returned. Throws TaskFailure if there is no place
  /// for the records, and DecodeError if the bytes are not those of records.
  virtual void add(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Output finish() = 0;
};

/// How the outputs of a stage travel from node to node. An output that is shuffled has a piece for
/// each part of the next stage; any other has one piece. Both functions are null if the outputs are
/// of a type that cannot travel, because it is not a record.
struct OutputForm {
  std::function<std::unique_ptr<PieceReader>(Output output, Part piece)> read;
  /// The task, which must outlive the writer, gives the memory and the file for the records.
  std::function<std::unique_ptr<PieceWriter>(const Task& task, Part piece)> write;

  [[nodiscard]] bool can_travel() const { return read != nullptr; }
};

/// The part of a stage that is data, and the same on all nodes.
struct StageDescription {
  /// The operations in the order of the data: "text | flat_map | map | reduce_by_key".
  std::string operations;
  Part parts = 0;
  /// How the stage's records are divided among parts of the next stage, such as "hash(16)"; empty
  /// if the stage does not shuffle.
  std::string partitioner = {};

  [[nodiscard]] bool is_shuffle() const { return !partitioner.empty(); }
  bool operator==(const StageDescription&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.operations, m.parts, m.partitioner); }
};

struct Stage;

/// Says what a task reads of another stage: one piece of the output of one part, or of the outputs
/// of all parts.
struct StageRead {
  std::shared_ptr<const Stage> stage;
  /// Absent for all parts.
  std::optional<Part> part;
  Part piece = 0;
};

/// Made by std::make_shared<Stage>(), and constant once other stages read it.
struct Stage {
  /// Destroys, one after the other, the stages that only this one holds: recursion would need a
  /// stack as deep as the plan is long.
  ~Stage();

  StageDescription description;
  /// The stages whose outputs this one reads: its lineage.
  std::vector<std::shared_ptr<const Stage>> inputs;
  /// Returns what run() reads for one part. Null if `inputs` is empty.
  std::function<std::vector<StageRead>(Part)> reads = nullptr;
  OutputForm form = {};
  /// Computes one part. Called from several threads at once, each time with another Task.
  std::function<Output(Task&)> run;
  /// Where the outputs stay after the job; null if they are dropped.
  std::shared_ptr<KeptOutputs> kept = nullptr;
  /// Returns a hash of the data that the stage reads from sources; null if it reads none.
  std::function<std::uint64_t()> source_hash = nullptr;
  /// The lineage_hash() that a stage had before without_lineage() dropped its inputs; 0 if it has
  /// its inputs.
  std::uint64_t cut_lineage = 0;
};
using StagePtr = std::shared_ptr<const Stage>;

}  // namespace starling::flow
