/// Defines a worker's step, and the functions that a rule over steps must have.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/alternatives.hpp"

namespace starling::barrier {

/// The number of iterations that a worker has finished.
using Step = std::uint64_t;

/// The step of a worker that has finished its job: above every real step, but small enough that a
/// rule can add to it without overflow.
inline constexpr Step finished = Step{1} << 62U;
/// A limit of steps or of lag that is no limit. Equal to `finished`, because no step is above it.
inline constexpr Step unlimited = finished;

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
  /// Returns the largest lag of a seen worker at which the worker still passes. `unlimited` or
  /// more: the worker always passes. nullopt: the rule sets no bound.
  { rule.max_lag() } -> std::same_as<std::optional<Step>>;
};

/// The step and the speed of a worker, as rules with runs or rounds see them. Times are measured on
/// the clock of the member that decides, from an arbitrary origin. If a worker has not pushed yet,
/// or does not answer, all fields but `step` are 0.
struct Pace {
  Step step = 0;
  /// When the worker pushed the update of its last step; 0 if it has not pushed.
  std::chrono::nanoseconds pushed_at{};
  /// The time between the worker's last two pushes; 0 if it has not made two.
  std::chrono::nanoseconds interval{};
  /// True while the worker waits at its barrier after its last push.
  bool waits = false;
  /// How long the worker's last step took, from the time at which it passed its barrier to its
  /// push; 0 if that is not known.
  std::chrono::nanoseconds duration{};
  /// A uniform random number in [0, 1), drawn anew at each push.
  double chance = 0;

  /// Records that the worker pushes at `now`, after a step that took `step_time`. `random` is a new
  /// random number in [0, 1).
  void record_push(std::chrono::nanoseconds now, std::chrono::nanoseconds step_time,
                   double random) {
    if (pushed_at.count() > 0) interval = now - pushed_at;
    pushed_at = now;
    waits = false;
    duration = step_time;
    chance = random;
  }
};

/// Returns true if no running worker among `others` is ahead of `own`.
[[nodiscard]] inline bool is_fastest(const Pace& own, std::span<const Pace> others) {
  return std::ranges::all_of(
      others, [&](const Pace& other) { return other.step <= own.step || other.step >= finished; });
}

/// A rule that may let a worker run: make several steps without asking. It decides by the paces of
/// the workers that it sees: of all, or of a sample. `admits` and `floor` say when a worker passes
/// without a run, and when a waiting worker goes on; `max_lag` bounds the lag during runs, too.
template <class R>
concept RuleWithRuns = Rule<R> &&
    requires(const R rule, const Pace& own, std::span<const Pace> others) {
  /// Returns the step up to which the worker may go on without asking again, the next one if it
  /// just passes, or its own step if it must wait.
  { rule.run_to(own, others) } -> std::same_as<Step>;
  /// Returns max_lag() for a rule that sees only a sample of the workers.
  { rule.max_lag_in_sample() } -> std::same_as<std::optional<Step>>;
};

/// A rule that lets all workers go on at once, when all of them wait: each for a number of steps of
/// its own. It decides by paces too. `admits` says when all wait for the same step.
template <class R>
concept RuleWithRounds = Rule<R> && requires(const R rule, std::span<const Pace> workers) {
  /// Returns for each worker the step up to which it may go on; the next one at least.
  { rule.round(workers) } -> std::same_as<std::vector<Step>>;
};

}  // namespace starling::barrier
