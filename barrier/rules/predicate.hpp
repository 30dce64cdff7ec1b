#pragma once

#include <functional>
#include <memory>

#include "starling/barrier/rules/step.hpp"

namespace starling::barrier {

/// A user's own rule: any function of the worker's own step and of the steps that it sees.
///
///     auto half = Predicate::make("half", [](Step own, std::span<const Step> seen) {
///       const auto on_pace = std::ranges::count_if(seen, [&](Step s) { return s >= own; });
///       return 2 * on_pace >= std::ssize(seen);
///     });
///
/// A rule may also be any function of the paces of the workers that it sees: of their steps, their
/// push times and the durations of their steps (a barrier over statistics, as in ASYNC: Soori et
/// al., arXiv 1907.08526).
///
///     auto near = Predicate::of_paces("near", [](const Pace& own, std::span<const Pace> others) {
///       return std::ranges::all_of(others, [&](const Pace& other) {
///         return other.step >= own.step || other.pushed_at + other.interval < own.pushed_at + 1s;
///       });
///     });
///
/// Many threads call the function, so it must not keep state. Its code is part of a program, so
/// only this program and its job files can name the rule, by its label.
struct Predicate {
  using Function = std::function<bool(Step own_step, std::span<const Step> seen)>;
  using PaceFunction = std::function<bool(const Pace& own, std::span<const Pace> others)>;

  static constexpr std::string_view name = "predicate";
  static constexpr std::string_view summary = "a rule of your own, given in code";

  /// The rule's name in text: one word without `:`, `,` and `=`, and not the name of a built-in
  /// barrier. barrier::check refuses other labels.
  std::string label = "predicate";
  /// Exactly one of `function` and `pace_function` is set.
  std::shared_ptr<const Function> function;
  std::shared_ptr<const PaceFunction> pace_function = nullptr;

  static Predicate make(std::string label, Function function) {
    return {std::move(label), std::make_shared<const Function>(std::move(function))};
  }
  /// Over all workers, the coordinator calls the function when a worker arrives, and for waiting
  /// workers whenever another one has arrived or left. So a change of time alone lets no worker
  /// pass. Over a sample (`sampled`), the function decides each draw.
  static Predicate of_paces(std::string label, PaceFunction function) {
    return {std::move(label), nullptr, std::make_shared<const PaceFunction>(std::move(function))};
  }

  [[nodiscard]] bool has_function() const {
    return pace_function ? bool{*pace_function} : function && *function;
  }
  [[nodiscard]] bool needs_paces() const { return pace_function != nullptr; }

  /// Requires: has_function() and not needs_paces().
  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return (*function)(own_step, seen);
  }
  /// Requires: has_function() and needs_paces().
  [[nodiscard]] Step run_to(const Pace& own, std::span<const Pace> others) const {
    return own.step + ((*pace_function)(own, others) ? 1 : 0);
  }
  [[nodiscard]] std::optional<Step> floor(Step) const { return std::nullopt; }
  [[nodiscard]] std::optional<Step> max_lag() const { return std::nullopt; }
  [[nodiscard]] std::optional<Step> max_lag_in_sample() const { return std::nullopt; }

  static Predicate parse(SpecReader& reader) {
    reader.refuse("a predicate is given in code, not in text");
    return {};
  }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Predicate&) const = default;
};

}  // namespace starling::barrier
