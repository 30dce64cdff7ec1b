/// A barrier decides when a worker may begin its next iteration. It is a rule over steps, and the
/// set of workers whose steps the rule sees. Pure values; any thread.
///
///     barrier::parse("pssp:s=4,beta=10")  ==  barrier::sampled(barrier::Ssp{4}, 10)
///
/// BSP, SSP and ASP are the usual rules; sampling is Probabilistic Synchronous Parallel (PSP: Wang,
/// Catterall, Mortier, arXiv 1709.07772).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/barrier/rules.hpp"
#include "starling/barrier/weighting.hpp"
#include "starling/base/result.hpp"

namespace starling::barrier {

struct Barrier {
  AnyRule rule = Bsp{};
  /// The sample size beta: how many random other workers the rule sees. nullopt: all others.
  std::optional<std::size_t> sample = std::nullopt;
  /// The weights with which these workers are drawn.
  Weighting weighting = Weighting::uniform;

  bool operator==(const Barrier&) const = default;
};

/// Returns the built-in rules with their default options.
[[nodiscard]] std::vector<AnyRule> built_in_rules();

/// Returns the PSP form of any rule: the rule sees `beta` other workers, drawn without replacement
/// with weights of the given kind.
[[nodiscard]] inline Barrier sampled(AnyRule rule, std::size_t beta,
                                     Weighting weighting = Weighting::uniform) {
  return {std::move(rule), beta, weighting};
}

/// Returns true if a worker at step `own_step` that sees the steps `seen` of others may pass.
[[nodiscard]] bool admits(const Barrier& barrier, Step own_step, std::span<const Step> seen);

/// Returns the step that every seen worker must have reached for the worker to pass; nullopt if the
/// rule needs all seen steps to decide. If it is 0, the worker passes without asking any other.
[[nodiscard]] std::optional<Step> floor(const Barrier& barrier, Step own_step);

/// Returns true if the rule decides by the paces of the workers that it sees: it is a RuleWithRuns
/// or a RuleWithRounds.
[[nodiscard]] bool needs_paces(const Barrier& barrier);

/// Returns the end of the run that a worker may begin now: the step up to which the worker may go
/// on without asking again, because it sees the paces `others`. Returns `own.step` if the worker
/// must wait, as it always must between rounds. Requires: needs_paces(barrier).
[[nodiscard]] Step run_to(const Barrier& barrier, const Pace& own, std::span<const Pace> others);

/// Returns true if each worker tunes the barrier for itself, by a Tuner (tuner.hpp): the barrier at
/// which a worker decides is then its tuner's, always a sampled one. The functions here answer for
/// the largest s and beta.
[[nodiscard]] inline bool is_tuned(const Barrier& barrier) {
  return std::holds_alternative<Tuned>(barrier.rule);
}

/// Returns true if each worker's Tuner needs the descent of the loss (descent.hpp) of each of its
/// steps, to be passed to Tuner::arrive().
[[nodiscard]] inline bool moves_with_descent(const Barrier& barrier) {
  const auto* rule = std::get_if<Tuned>(&barrier.rule);
  return rule != nullptr && rule->measure == Tuned::Measure::progress;
}

/// Returns true for A-BSP: when the first worker has computed its batch, the others hand in what
/// they have computed.
[[nodiscard]] inline bool hands_in_early(const Barrier& barrier) {
  return std::holds_alternative<Absp>(barrier.rule);
}

/// Returns true if the rule has a sampled form that differs from it: it does not always pass, has
/// no rounds or batches for which all workers must act together, and does not choose its samples
/// itself.
[[nodiscard]] bool can_be_sampled(const AnyRule& rule);

/// Returns true if the rule lets all workers go on together, once all wait (RuleWithRounds).
[[nodiscard]] bool has_rounds(const Barrier& barrier);

/// Begins a round, for which all workers wait: returns for each of them the step up to which it may
/// go on. Requires: has_rounds(barrier).
[[nodiscard]] std::vector<Step> round(const Barrier& barrier, std::span<const Pace> workers);

/// Returns the step that every seen worker is guaranteed to have reached when a worker begins the
/// iteration after `own_step`, in the middle of a run too; nullopt if the barrier guarantees none.
/// (floor() is for the begin of a run only.)
[[nodiscard]] std::optional<Step> promised_floor(const Barrier& barrier, Step own_step);

/// Returns how many workers the rule sees if there are `others` other live workers: all of them, or
/// the sample size if that is less; 0 if the barrier always passes. For a tuned barrier, returns
/// the most workers that it sees.
[[nodiscard]] std::size_t seen_workers(const Barrier& barrier, std::size_t others);

/// Returns true for ASP and for barriers that equal it (s = infinity, beta = 0).
[[nodiscard]] bool always_passes(const Barrier& barrier);

/// Returns true if workers draw random others at this barrier. If so, a Recheck (recheck.hpp)
/// decides when a waiting worker draws again.
[[nodiscard]] inline bool is_sampled(const Barrier& barrier) {
  return is_tuned(barrier) || (barrier.sample && !always_passes(barrier));
}

/// Returns true if workers draw others with weights that differ. Workers that ask each other learn
/// these weights, so the barrier works in hybrid and peer mode only.
[[nodiscard]] inline bool is_weighted(const Barrier& barrier) {
  return is_sampled(barrier) && barrier.weighting != Weighting::uniform;
}

/// Returns true if one member must know every worker's step; the barrier then works in central mode
/// only.
[[nodiscard]] bool needs_every_step(const Barrier& barrier);

/// Returns true if the rule is over all workers and tolerates no lag: `bsp`, `absp`, `ssp:s=0`,
/// `quorum:q=1`, `fluent:s=0,p=1`. The pushes of one step are then applied together.
[[nodiscard]] bool is_bsp(const Barrier& barrier);

/// Returns the largest spread (highest minus lowest step) that the barrier allows; nullopt if it
/// sets no bound.
[[nodiscard]] std::optional<Step> spread_bound(const Barrier& barrier);

/// Refuses a label by which parse() could not find the predicate: an empty label, a label with
/// white space, `:`, `,` or `=`, and the name of a built-in barrier, with or without a `p` before
/// it.
[[nodiscard]] Result<void> check(const Predicate& predicate);

/// Refuses a barrier that a job with `workers` workers cannot run: options that parse() refuses, a
/// sample size of `workers` or more, a sampled rule that cannot be sampled, weights without a
/// sample, or a predicate with a bad label.
[[nodiscard]] Result<void> check(const Barrier& barrier, std::size_t workers);

/// Reads `bsp`, `ssp:s=4`, `asp`, `pbsp:beta=10`, `pssp:s=4,beta=10`, and the user's `predicates`
/// by their labels; a `p` before a label samples the predicate. A sampled barrier may have a
/// weighting: `pssp:s=4,beta=10,draw=availability`. Refuses an unknown name and suggests the
/// nearest valid one.
[[nodiscard]] Result<Barrier> parse(std::string_view text,
                                    std::span<const Predicate> predicates = {});

/// Returns text that parse() reads back.
[[nodiscard]] std::string print(const Barrier& barrier);

/// A barrier as help texts list it.
struct Description {
  /// An example that parse() reads.
  std::string example;
  /// When a worker passes the barrier, and whose steps the rule sees.
  std::string summary;
  /// True if the barrier works in central mode only.
  bool central_only;
};
/// Returns a description of each built-in rule, over all workers and over samples of `beta`.
[[nodiscard]] std::vector<Description> descriptions(std::size_t beta = 2);

}  // namespace starling::barrier
