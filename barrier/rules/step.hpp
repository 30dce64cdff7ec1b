/// A worker's clock, and the functions that a rule over clocks must offer.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "starling/base/alternatives.hpp"

namespace starling::barrier {

/// Count of a worker's finished iterations.
using Step = std::uint64_t;

/// The step of a worker that has finished its job: ahead of every real step, yet small enough that
/// a rule can add to it without overflow.
inline constexpr Step finished = Step{1} << 62U;

/// Decides when a worker at step `own`, seeing the steps `seen` of others, may start its next
/// iteration.
///
/// Rules are values: no clock, no randomness, no memory of earlier calls. A worker that did not
/// answer is shown to the rule as step 0.
template <class R>
concept Rule = Alternative<R> && requires(const R rule, Step own, std::span<const Step> seen) {
  /// One line for people.
  { R::summary } -> std::convertible_to<std::string_view>;
  /// The decision.
  { rule.admits(own, seen) } -> std::same_as<bool>;
  /// The step that every seen worker must have reached, for rules of that form: the first seen
  /// worker below it decides against passing. nullopt: the rule must see all answers to decide.
  { rule.floor(own) } -> std::same_as<std::optional<Step>>;
  /// The largest lag of a seen worker at which it still lets pass. `finished` or more: it always
  /// lets pass. nullopt: it promises none.
  { rule.max_lag() } -> std::same_as<std::optional<Step>>;
};

}  // namespace starling::barrier
