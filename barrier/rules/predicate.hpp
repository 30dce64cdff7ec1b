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
/// Many threads call the function, so it must not keep state. Its code is part of a program, so
/// only this program and its job files can name the rule, by its label.
struct Predicate {
  using Function = std::function<bool(Step own_step, std::span<const Step> seen)>;

  static constexpr std::string_view name = "predicate";
  static constexpr std::string_view summary = "a rule of your own, given in code";

  /// The rule's name in text: one word without `:`, `,` and `=`, and not the name of a built-in
  /// barrier. barrier::check refuses other labels.
  std::string label = "predicate";
  std::shared_ptr<const Function> function;

  static Predicate make(std::string label, Function function) {
    return {std::move(label), std::make_shared<const Function>(std::move(function))};
  }

  /// Requires: a function is set.
  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return (*function)(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step) const { return std::nullopt; }
  [[nodiscard]] std::optional<Step> max_lag() const { return std::nullopt; }

  static Predicate parse(SpecReader& reader) {
    reader.refuse("a predicate is given in code, not in text");
    return {};
  }
  [[nodiscard]] std::string options() const { return {}; }

  bool operator==(const Predicate&) const = default;
};

}  // namespace starling::barrier
