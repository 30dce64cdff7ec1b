/// A barrier: a rule over steps, and a view of whose steps it sees. Pure values; any thread.
///
///     barrier::parse("pssp:s=4,beta=10")  ==  barrier::sampled(barrier::Ssp{4}, 10)
///
/// Sources: BSP, SSP and ASP as usual; sampling is Probabilistic Synchronous Parallel (Wang,
/// Catterall, Mortier, arXiv 1709.07772).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/barrier/rules.hpp"
#include "starling/base/result.hpp"

namespace starling::barrier {

struct Barrier {
  AnyRule rule = Bsp{};
  /// How many random others the rule sees (the sample size beta); nullopt: everyone.
  std::optional<std::size_t> sample = std::nullopt;

  bool operator==(const Barrier&) const = default;
};

/// PSP as a combinator over any rule: judged on `beta` others drawn uniformly without replacement.
[[nodiscard]] inline Barrier sampled(AnyRule rule, std::size_t beta) {
  return {std::move(rule), beta};
}

/// May a worker at step `own` go on, having seen `seen`?
[[nodiscard]] bool admits(const Barrier& barrier, Step own, std::span<const Step> seen);

/// See Rule::floor. A floor of 0 passes without asking anyone.
[[nodiscard]] std::optional<Step> floor(const Barrier& barrier, Step own);

/// How many of `others` live others the barrier looks at: all, or the sample clamped to them.
[[nodiscard]] std::size_t observes(const Barrier& barrier, std::size_t others);

/// True for ASP and what equals it (s = infinity, beta = 0).
[[nodiscard]] bool always_passes(const Barrier& barrier);

/// True where others are drawn, so that it matters when who waits looks again.
[[nodiscard]] inline bool draws(const Barrier& barrier) {
  return barrier.sample && !always_passes(barrier);
}

/// True where someone must know every worker's step: such a barrier works in central mode only.
[[nodiscard]] bool needs_every_step(const Barrier& barrier);

/// True for BSP over everyone, and SSP with s = 0: pushes of a step are then applied together.
[[nodiscard]] bool is_bsp(const Barrier& barrier);

/// The largest spread (fastest minus slowest step) the barrier allows; nullopt: unbounded.
[[nodiscard]] std::optional<Step> spread_bound(const Barrier& barrier);

/// Refuses a label by which parse() could not find the rule: one that is empty or holds white
/// space, `:`, `,` or `=`, and one that a built-in barrier has, with or without a `p` before it.
[[nodiscard]] Result<void> check(const Predicate& rule);

/// Refuses what no job can run: a sample among fewer than beta others, a predicate of a bad label.
[[nodiscard]] Result<void> check(const Barrier& barrier, std::size_t workers);

/// Reads `bsp`, `ssp:s=4`, `asp`, `pbsp:beta=10`, `pssp:s=4,beta=10` and, by their labels, the
/// rules in `own` (a `p` before the label samples them). Unknown names are refused with the nearest
/// valid.
[[nodiscard]] Result<Barrier> parse(std::string_view text, std::span<const Predicate> own = {});

/// The text that parse reads back.
[[nodiscard]] std::string print(const Barrier& barrier);

/// What a person may choose from: a form that parse reads, and what it does.
struct Description {
  std::string form;
  std::string summary;
  bool central_only;
};
[[nodiscard]] std::vector<Description> descriptions();

}  // namespace starling::barrier
