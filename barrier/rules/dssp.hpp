#pragma once

#include <algorithm>
#include <optional>

#include "starling/barrier/rules/ssp.hpp"

namespace starling::barrier {

/// Dynamic stale synchronous parallel (Zhao et al., ICDCS 2019, arXiv 1908.11848). A worker passes
/// if it is at most `low` steps ahead of the slowest. If it is further ahead and is the fastest, it
/// may run: it makes several steps without asking. Their number, at most high - low, is the one
/// after which its last push is predicted to come closest to a push of the slowest worker; the
/// prediction uses the last two pushes of both workers. Otherwise it waits until it is at most
/// `low` steps ahead.
///
/// The published text lets a worker run again when a run has ended, however far ahead it then is.
/// With `is_capped`, no worker passes more than `high` steps ahead of the slowest.
///
/// Over a sample, the slowest and the fastest are those among the worker itself and the workers
/// that it has drawn.
struct Dssp {
  static constexpr std::string_view name = "dssp";
  static constexpr std::string_view summary = "as ssp:s=LOW, but the fastest may run on";

  /// The largest lag, in steps, at which a worker passes without a run; at least 1.
  Step low = 3;
  /// A run has at most high - low steps. With `is_capped`, `high` is also the largest lag at which
  /// a worker passes. At least `low`.
  Step high = 15;
  /// True if `high` bounds every lag; false as in the published text.
  bool is_capped = false;

  [[nodiscard]] bool admits(Step own_step, std::span<const Step> seen) const {
    return Ssp{low}.admits(own_step, seen);
  }
  [[nodiscard]] std::optional<Step> floor(Step own_step) const { return Ssp{low}.floor(own_step); }
  [[nodiscard]] std::optional<Step> max_lag() const {
    return is_capped ? std::optional{high} : std::nullopt;
  }
  [[nodiscard]] std::optional<Step> max_lag_in_sample() const { return max_lag(); }

  [[nodiscard]] Step run_to(const Pace& own, std::span<const Pace> others) const {
    if (others.empty()) return own.step + 1;
    // The slowest worker; if there are several, the one whose next push comes last.
    const Pace& slowest = *std::ranges::min_element(others, [](const Pace& a, const Pace& b) {
      if (a.step != b.step) return a.step < b.step;
      return a.pushed_at + a.interval > b.pushed_at + b.interval;
    });
    if (own.step <= slowest.step + low) return own.step + 1;
    const bool is_known = own.interval.count() > 0 && slowest.interval.count() > 0;
    if (own.waits || !is_fastest(own, others) || !is_known) return own.step;
    const Step lag = own.step - slowest.step;
    const Step longest = high - low;
    const Step allowed = lag > high ? 0 : high - lag + 1;
    return own.step + best_run(own, slowest, is_capped ? std::min(longest, allowed) : longest);
  }

  /// Returns the number of steps, at most `longest`, after which the last push of `own` is
  /// predicted to come closest to a push of `slowest`; the smallest such number.
  [[nodiscard]] static Step best_run(const Pace& own, const Pace& slowest, Step longest) {
    using Count = std::chrono::nanoseconds::rep;
    Step best = 0;
    std::optional<Count> best_gap;
    for (Step run = 0; run <= longest; ++run) {
      const Count at = (own.pushed_at + own.interval * static_cast<Count>(run)).count();
      // The slowest worker's pushes before and after this time are counted from its last push. The
      // first count is at least 1, because the worker has made no other push yet.
      const Count since = at - slowest.pushed_at.count();
      const Count before = std::max<Count>(1, since / slowest.interval.count());
      for (const Count pushes : {before, before + 1}) {
        const Count gap = std::abs(slowest.interval.count() * pushes - since);
        if (!best_gap || gap < *best_gap) {
          best_gap = gap;
          best = run;
        }
      }
    }
    return best;
  }

  static Dssp parse(SpecReader& reader) {
    Dssp rule;
    rule.low = reader.count("low", rule.low, 1, steps_max);
    rule.high = reader.count("high", std::max(rule.high, rule.low), 1, steps_max);
    rule.is_capped = reader.flag("cap");
    if (rule.high < rule.low)
      reader.refuse("high=" + std::to_string(rule.high) +
                    ": valid: at least low=" + std::to_string(rule.low));
    return rule;
  }
  [[nodiscard]] std::string options() const {
    return "low=" + std::to_string(low) + ",high=" + std::to_string(high) +
           (is_capped ? ",cap" : "");
  }

  bool operator==(const Dssp&) const = default;

 private:
  static constexpr Step steps_max = 10'000;
};

}  // namespace starling::barrier
