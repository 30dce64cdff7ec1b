/// Stages. A stage is a chain of narrow operations, fused into one loop over each of its parts.
/// At the end of the chain, the records are shuffled, kept, or given to an action. Each part is one
/// task.
///
/// A stage has a description, which is plain data, and a function. All nodes of a job run the same
/// program, so they build the same stages: a coordinator names a task by its stage's id and its
/// part, and only the description is ever compared or sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace starling::flow {

/// The number of a part of a data set, from 0.
using Part = std::uint32_t;

/// The result of one task. Only the functions of stages know its type: the function of a stage that
/// reads it was compiled with that of the stage that made it.
using Output = std::shared_ptr<const void>;

class Task;
class KeptOutputs;

/// The part of a stage that is data, and the same on all nodes.
struct StageDescription {
  /// The operations in the order of the data: "text | flat_map | map | reduce_by_key".
  std::string operations;
  Part parts = 0;
  /// How the stage's records are divided among parts of the next stage, such as "hash(16)"; empty
  /// if the stage does not shuffle.
  std::string partitioner = {};

  bool operator==(const StageDescription&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.operations, m.parts, m.partitioner); }
};

/// Made by std::make_shared<Stage>(), and constant once other stages read it.
struct Stage {
  /// Destroys the stages that only this one holds one after the other: recursion would need a stack
  /// as deep as the plan is long.
  ~Stage();

  StageDescription description;
  /// The stages whose outputs this one reads: its lineage.
  std::vector<std::shared_ptr<const Stage>> inputs;
  /// Computes one part. Called from several threads at once, each time with another Task.
  std::function<Output(Task&)> run;
  /// Where the outputs stay after the job; null if they are dropped.
  std::shared_ptr<KeptOutputs> kept = nullptr;
};
using StagePtr = std::shared_ptr<const Stage>;

}  // namespace starling::flow
