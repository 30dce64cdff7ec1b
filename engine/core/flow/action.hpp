/// Actions, and the names of their outputs. A flow is one program that every member runs. Each
/// time it needs a result, such as that of collect() or count(), it begins an action, whose stages
/// the members compute together. All members begin the same actions in the same order.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/scheduler.hpp"

namespace starling::core {

/// The number of an action in its program, from 0.
using ActionId = std::uint32_t;

/// A stage of an action's plan. It is also the name of the stage's outputs; those of a cached stage
/// keep the name that they have in the first action with the stage.
struct StageName {
  ActionId action = 0;
  flow::StageId stage = 0;

  auto operator<=>(const StageName&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.action, m.stage); }
};

/// One part of a stage: a task, which computes it, or its output.
struct PartName {
  StageName stage;
  flow::Part part = 0;

  auto operator<=>(const PartName&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.stage, m.part); }
};

/// One piece of an output (flow::OutputForm).
struct PieceName {
  PartName output;
  flow::Part piece = 0;

  auto operator<=>(const PieceName&) const = default;
  static constexpr auto fields(auto& m) { return std::tie(m.output, m.piece); }
};

/// The stages of an action, without their functions.
struct Action {
  ActionId id = 0;
  /// A hash of the descriptions of all stages: the same on all members that run the same program.
  std::uint64_t fingerprint = 0;
  std::vector<flow::StageShape> stages;
  /// By stage: the name of its outputs.
  std::vector<StageName> names;
  /// By stage: true if its outputs are kept after the action.
  std::vector<bool> is_kept;
  /// True if every member needs the outputs of the last stage.
  bool gathers = false;
  /// A task's read of one part of a stage of this action, or of all its parts: one piece of each.
  struct Read {
    flow::StageId stage = 0;
    /// Absent for all parts.
    std::optional<flow::Part> part;
    flow::Part piece = 0;
  };
  std::function<std::vector<Read>(flow::StageId, flow::Part)> reads;

  [[nodiscard]] flow::StageId last() const { return static_cast<flow::StageId>(stages.size() - 1); }
  [[nodiscard]] PartName output_of(flow::StageId stage, flow::Part part) const {
    return {names[stage], part};
  }
  /// True if the action has this stage and part. A message from another member may name a stage or
  /// part that it does not have.
  [[nodiscard]] bool has(flow::StageId stage, flow::Part part) const {
    return stage < stages.size() && part < stages[stage].parts;
  }
};
using ActionPtr = std::shared_ptr<const Action>;

/// The actions that the member's own program has begun.
using Actions = std::map<ActionId, ActionPtr>;

/// How far the program of a member has got.
struct ProgramPosition {
  /// How many actions it has begun, and how many of them have ended on this member.
  ActionId begun = 0;
  ActionId ended = 0;
  /// Action::fingerprint of the last action that it has begun.
  std::uint64_t fingerprint = 0;
  bool has_returned = false;

  static constexpr auto fields(auto& m) {
    return std::tie(m.begun, m.ended, m.fingerprint, m.has_returned);
  }
};

/// The error of an action that has failed.
struct ActionFailure {
  ActionId action = 0;
  std::string why;

  static constexpr auto fields(auto& m) { return std::tie(m.action, m.why); }
};

}  // namespace starling::core
