/// Counts the workers at each step, and computes with which probability a worker at each step
/// passes the barrier. Not thread-safe.
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

/// The workers that have finished the same step. All of them that wait pass with the same
/// probability.
struct StepGroup {
  /// The number of the group's workers that still run.
  std::size_t running = 0;
  /// A draw passes if all drawn workers have reached `floor`; `reached` of all workers have.
  Step floor = 0;
  std::size_t reached = 0;
  /// The probability that a draw passes, and -log(1 - pass), whose sums over independent draws
  /// matter.
  double pass = 1;
  double hazard = 0;
  /// The workers of the group that wait, and draw again at each arrival.
  std::vector<MemberId> waiters;
  /// A linked list of the groups that watch this step, because it is their floor: `newest_watcher`
  /// is the last of them that was opened; `next_watcher` is the one with the same floor as this
  /// group that was opened before it.
  std::optional<Step> newest_watcher;
  std::optional<Step> next_watcher;
};

/// The counts of all workers by step; all begin at step 0. If the barrier has no floor or always
/// passes, there are no probabilities, and only the counts are kept.
class StepCounts {
 public:
  /// Requires: barrier::check(barrier, workers).
  StepCounts(const barrier::Barrier& barrier, std::size_t workers);

  /// Records that a worker at `to - 1` has finished `to`.
  void advance(Step to);
  /// Records that a worker has ended at `last`, the highest step. It counts as having reached all
  /// floors.
  void finish(Step last);

  /// The smallest and the largest step of the running workers. Requires: a worker runs.
  [[nodiscard]] Step min() const noexcept { return groups_.first(); }
  [[nodiscard]] Step max() const noexcept { return groups_.end() - 1; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Returns the median step of all workers, of which ended ones count as ahead of all others;
  /// nullopt if the worker in the middle has ended.
  [[nodiscard]] std::optional<Step> median() const;

  /// Requires: min() <= step <= max().
  [[nodiscard]] const StepGroup& group(Step step) const { return groups_[step]; }

  /// Adds a worker to the waiters at `step`.
  void add_waiter(Step step, MemberId worker);
  /// Removes a worker from the waiters at `step`.
  void remove_waiter(Step step, MemberId worker);

  /// Draws once for each waiter, removes the waiters that pass, and calls `release` with each.
  /// `remaining_hazard` is an exponential random variable of mean 1, from which the hazard of every
  /// failed draw is subtracted; after a random pass a new one is drawn. This is exact: of
  /// independent trials with probabilities p_1, p_2, ..., the first success is the trial at which
  /// the sum of -log(1 - p_i) exceeds such a variable.
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
    // The number of waiters that have not drawn yet. Each of them is equally likely to be the next.
    auto left = static_cast<double>(group.waiters.size());
    while (remaining_hazard < left * group.hazard) {
      left = std::max(0.0, left - std::floor(remaining_hazard / group.hazard) - 1);
      MemberId& drawn = group.waiters[random.below(group.waiters.size())];
      const MemberId worker = std::exchange(drawn, group.waiters.back());
      group.waiters.pop_back();
      release(worker);
      remaining_hazard = random.exponential(1);
    }
    remaining_hazard -= left * group.hazard;
  }

  [[nodiscard]] static double hazard_of(const StepGroup& group) {
    return group.waiters.empty() ? 0 : static_cast<double>(group.waiters.size()) * group.hazard;
  }
  void open_group(Step step);
  void update_chance(StepGroup& group) const;

  barrier::Barrier barrier_;
  std::size_t workers_;
  std::size_t running_;
  /// The number of others that a draw sees; nullopt if there are no probabilities.
  std::optional<std::size_t> sample_size_;
  RingByStep<StepGroup> groups_;
  /// The sum of the hazards of all waiters.
  double hazard_ = 0;
};

}  // namespace starling::sim
