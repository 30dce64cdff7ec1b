/// Defines a worker's step, and the functions that a rule over steps must have.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"

namespace starling::barrier {

/// The number of iterations that a worker has finished.
using Step = std::uint64_t;

/// The step of a worker that has finished its job: above every real step, but small enough that a
/// rule can add to it without overflow. As a limit on steps or lags it stands for infinity.
inline constexpr Step finished = Step{1} << 62U;

/// A rule decides whether a worker at step `own_step` that sees the steps `seen` of others passes,
/// which means that it may begin its next iteration.
///
/// A rule is a value: it has no clock, no randomness, and no memory of earlier calls. A worker that
/// did not answer has step 0 in `seen`.
template <class R>
concept Rule = Alternative<R> && requires(const R rule, Step own_step, std::span<const Step> seen) {
  /// One line for help texts: when a worker passes.
  { R::summary } -> std::convertible_to<std::string_view>;
  /// Returns true if the worker may pass.
  { rule.admits(own_step, seen) } -> std::same_as<bool>;
  /// Returns the step that every seen worker must have reached; the first seen worker below it
  /// suffices to decide against passing. nullopt: the rule needs all answers to decide.
  { rule.floor(own_step) } -> std::same_as<std::optional<Step>>;
  /// Returns the largest lag of a seen worker at which the worker still passes. `finished` or more:
  /// the worker always passes. nullopt: the rule sets no bound.
  { rule.max_lag() } -> std::same_as<std::optional<Step>>;
};

}  // namespace starling::barrier
