/// A barrier: a rule over steps, and the set of workers whose steps it sees. Pure values; any
/// thread.
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
  /// How many random other workers the rule sees (the sample size beta); nullopt: all of them.
  std::optional<std::size_t> sample = std::nullopt;

  bool operator==(const Barrier&) const = default;
};

/// The rules that text can name, as they are without options: all but a program's own predicates,
/// which text names by their labels.
[[nodiscard]] std::vector<AnyRule> named_rules();

/// PSP as a combinator over any rule: the rule judges `beta` other workers, drawn uniformly without
/// replacement.
[[nodiscard]] inline Barrier sampled(AnyRule rule, std::size_t beta) {
  return {std::move(rule), beta};
}

/// Returns whether a worker at step `own` that has seen the steps `seen` may pass.
[[nodiscard]] bool admits(const Barrier& barrier, Step own, std::span<const Step> seen);

/// See Rule::floor. With a floor of 0 a worker passes without asking any other.
[[nodiscard]] std::optional<Step> floor(const Barrier& barrier, Step own);

/// Returns how many of `others` live other workers the barrier looks at: all, or the sample size
/// where that is less.
[[nodiscard]] std::size_t observes(const Barrier& barrier, std::size_t others);

/// True for ASP and for barriers that equal it (s = infinity, beta = 0).
[[nodiscard]] bool always_passes(const Barrier& barrier);

/// True where other workers are drawn, so that the time at which a waiting worker looks again
/// matters.
[[nodiscard]] inline bool draws(const Barrier& barrier) {
  return barrier.sample && !always_passes(barrier);
}

/// True where the barrier needs every worker's step in one place: it then works in central mode
/// only.
[[nodiscard]] bool needs_every_step(const Barrier& barrier);

/// True for BSP over everyone, and SSP with s = 0: pushes of a step are then applied together.
[[nodiscard]] bool is_bsp(const Barrier& barrier);

/// The largest spread (fastest minus slowest step) the barrier allows; nullopt: unbounded.
[[nodiscard]] std::optional<Step> spread_bound(const Barrier& barrier);

/// Refuses a label by which parse() could not find the rule: an empty label, a label with white
/// space, `:`, `,` or `=`, and the name of a built-in barrier, with or without a `p` before it.
[[nodiscard]] Result<void> check(const Predicate& rule);

/// Refuses a barrier that no job can run: a sample among fewer than beta others, or a predicate
/// with a bad label.
[[nodiscard]] Result<void> check(const Barrier& barrier, std::size_t workers);

/// Reads `bsp`, `ssp:s=4`, `asp`, `pbsp:beta=10`, `pssp:s=4,beta=10` and, by their labels, the
/// rules in `own` (a `p` before the label samples them). Refuses an unknown name and suggests the
/// nearest valid one.
[[nodiscard]] Result<Barrier> parse(std::string_view text, std::span<const Predicate> own = {});

/// The text that parse reads back.
[[nodiscard]] std::string print(const Barrier& barrier);

/// A barrier as help texts list it: a form that parse reads, and the effect of that barrier.
struct Description {
  std::string form;
  std::string summary;
  bool central_only;
};
[[nodiscard]] std::vector<Description> descriptions();

}  // namespace starling::barrier
