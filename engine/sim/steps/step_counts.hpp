/// Counts the workers at each step, and computes for each step the probability with which a worker
/// there passes the barrier. Not thread-safe.
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
  /// A draw passes if all drawn workers have reached `floor`.
  Step floor = 0;
  /// The number of all workers that have reached `floor`.
  std::size_t reached = 0;
  /// The probability that a draw passes, and the hazard -log(1 - pass): the probability that at
  /// least one of several independent draws passes is 1 - exp(-sum of their hazards).
  double pass = 1;
  double hazard = 0;
  /// The workers of the group that wait, and draw again at each arrival.
  std::vector<MemberId> waiters;
  /// The groups whose floor is this group's step form a linked list, from the newest to the oldest:
  /// they watch for workers that reach it. `newest_watcher` is the head of this group's list.
  /// `next_watcher` links this group to the next older group that has the same floor.
  std::optional<Step> newest_watcher;
  std::optional<Step> next_watcher;
};

/// The counts of all workers by step. All workers begin at step 0. If the barrier has no floor or
/// always passes, StepCounts keeps only the counts, and computes no probabilities.
class StepCounts {
 public:
  /// Requires: barrier::check(barrier, workers).
  StepCounts(const barrier::Barrier& barrier, std::size_t workers);

  /// Records that a worker at `to - 1` has finished `to`.
  void advance(Step to);
  /// Records that a worker has ended at `last`, the highest step. This worker counts as having
  /// reached all floors.
  void finish(Step last);

  /// The smallest and the largest step of the running workers. Requires: a worker runs.
  [[nodiscard]] Step min() const noexcept { return groups_.first(); }
  [[nodiscard]] Step max() const noexcept { return groups_.end() - 1; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Returns the median step of all workers; a worker that has ended counts as ahead of all others.
  /// Returns nullopt if the worker in the middle has ended.
  [[nodiscard]] std::optional<Step> median() const;

  /// Requires: min() <= step <= max().
  [[nodiscard]] const StepGroup& group(Step step) const { return groups_[step]; }

  /// Adds a worker to the waiters at `step`.
  void add_waiter(Step step, MemberId worker);
  /// Removes a worker from the waiters at `step`.
  void remove_waiter(Step step, MemberId worker);

  /// Draws once for each waiter, removes the waiters that pass, and calls `release` with each of
  /// them. `remaining_hazard` begins as an exponential random variable of mean 1. Every failed draw
  /// subtracts its hazard from `remaining_hazard`; after a random pass its value is drawn anew.
  /// This is exact: of independent trials with probabilities p_1, p_2, ..., the first success is
  /// the trial at which the sum of -log(1 - p_i) exceeds such a random variable.
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
