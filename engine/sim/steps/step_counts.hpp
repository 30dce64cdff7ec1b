/// Counts the workers at each step, and computes for each step the probability that a draw of a
/// worker at this step passes the barrier. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/random.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/sim/steps/ring_by_step.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;

/// The workers at one step. All waiting workers of a group pass with the same probability.
struct StepGroup {
  /// The number of workers at this step that have not ended. Workers that wait count, too.
  std::size_t running = 0;
  /// The step that all drawn workers must have reached for a draw to pass (barrier::floor). Under a
  /// barrier that is not sampled, a draw takes all other workers.
  Step floor = 0;
  /// The number of workers that have reached `floor`. All workers that have ended count, too.
  std::size_t reached = 0;
  /// The probability that a draw passes.
  double pass = 1;
  /// -log(1 - pass). At least one of several independent draws passes with probability
  /// 1 - exp(-h), where h is the sum of their hazards.
  double hazard = 0;
  /// The workers of the group that wait. They draw again whenever a worker finishes a step.
  std::vector<MemberId> waiters;
  /// The groups that have the same floor form a linked list, from the newest to the oldest. When a
  /// worker reaches this floor, advance() updates them all. A group is identified by its step.
  /// `newest_watcher` is the newest of the groups whose floor is this group's step. `next_watcher`
  /// is the next older group with the same floor as this group.
  std::optional<Step> newest_watcher;
  std::optional<Step> next_watcher;
};

/// Keeps the number of workers at each step. All workers begin at step 0. If the barrier always
/// passes or has no floor (barrier::floor), StepCounts only counts, and computes no probabilities.
class StepCounts {
 public:
  /// Requires: barrier::check(barrier, workers).
  StepCounts(const barrier::Barrier& barrier, std::size_t workers);

  /// Records that a worker has gone from step `to - 1` to step `to`.
  void advance(Step to);
  /// Records that a worker at step `last` has ended. It counts as having reached all floors.
  /// Requires: all workers end at step `last`, so that no floor is above it.
  void finish(Step last);

  /// Returns the smallest step of the workers that have not ended. Requires: running() > 0.
  [[nodiscard]] Step min() const noexcept { return groups_.first(); }
  /// Returns the largest step that any worker has reached, also one that has ended.
  [[nodiscard]] Step max() const noexcept { return groups_.end() - 1; }
  /// Returns the number of workers that have not ended. Workers that wait count, too.
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Returns the median step of all workers, the larger of two in the middle. Workers that have
  /// ended count as ahead of all others. Returns nullopt if the median is that of such a worker.
  [[nodiscard]] std::optional<Step> median() const;

  /// Requires: min() <= step <= max().
  [[nodiscard]] const StepGroup& group(Step step) const { return groups_[step]; }

  /// Adds a worker to the waiters at `step`.
  void add_waiter(Step step, MemberId worker);
  /// Removes a worker from the waiters at `step`.
  void remove_waiter(Step step, MemberId worker);

  /// Draws once for each waiter, removes the waiters that pass, and calls `release` with each of
  /// them. The caller keeps `remaining_hazard` between calls; for the first call, it is an
  /// exponential random number with mean 1. Each failed draw subtracts its hazard from it. After a
  /// pass with a probability below 1, it becomes a new exponential random number.
  ///
  /// The result has the exact distribution: in a sequence of independent trials with probabilities
  /// p_1, p_2, ..., the first success is the trial at which the sum of -log(1 - p_i) exceeds an
  /// exponential random number with mean 1.
  template <class Release>
  void let_pass(double& remaining_hazard, Random& random, Release release) {
    if (hazard_ <= remaining_hazard) {
      remaining_hazard -= hazard_;
      return;
    }
    hazard_ = 0;
    for (Step step = groups_.first(); step < groups_.end(); ++step) {
      StepGroup& group = groups_[step];
      if (group.waiters.empty()) continue;
      let_pass(group, remaining_hazard, random, release);
      hazard_ += hazard_of(group);
    }
  }

 private:
  template <class Release>
  static void let_pass(StepGroup& group, double& remaining_hazard, Random& random,
                       Release release) {
    if (group.pass >= 1) {
      for (const MemberId worker : group.waiters) release(worker);
      group.waiters.clear();
      return;
    }
    // The number of draws that are left. The next floor(remaining_hazard / hazard) draws fail, and
    // the draw after them passes. All waiters that are left are equally likely to be the one that
    // passes, so a random one is released.
    auto undrawn = static_cast<double>(group.waiters.size());
    while (remaining_hazard < undrawn * group.hazard) {
      undrawn = std::max(0.0, undrawn - std::floor(remaining_hazard / group.hazard) - 1);
      MemberId& drawn = group.waiters[random.below(group.waiters.size())];
      const MemberId worker = std::exchange(drawn, group.waiters.back());
      group.waiters.pop_back();
      release(worker);
      remaining_hazard = random.exponential(1);
    }
    remaining_hazard -= undrawn * group.hazard;
  }

  /// Returns the sum of the hazards of the group's waiters.
  [[nodiscard]] static double hazard_of(const StepGroup& group) {
    return group.waiters.empty() ? 0 : static_cast<double>(group.waiters.size()) * group.hazard;
  }
  void open_group(Step step);
  void update_probability(StepGroup& group) const;

  barrier::Barrier barrier_;
  std::size_t workers_;
  std::size_t running_;
  /// The number of other workers that a draw sees; nullopt if no probabilities are computed.
  std::optional<std::size_t> sample_size_;
  RingByStep<StepGroup> groups_;
  /// The sum of the hazards of all waiters.
  double hazard_ = 0;
};

}  // namespace starling::sim
