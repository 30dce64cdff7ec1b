/// Counts the workers at each step, and computes each step's chance to pass. Not thread-safe.
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

/// The workers that have finished the same step. All waiters among them have the same chance to
/// pass.
struct Group {
  /// How many workers are there and still run.
  std::size_t running = 0;
  /// The step that all workers seen must have reached, and how many of all workers have.
  Step floor = 0;
  std::size_t reached = 0;
  /// The chance that a draw passes, and -log(1 - chance), which adds up over independent draws.
  double pass = 1;
  double hazard = 0;
  /// The workers of the group that wait and are drawn for at each arrival.
  std::vector<MemberId> waiters;
  /// The group opened last whose floor is this step, and the group opened before this one with the
  /// same floor as this one.
  std::optional<Step> watcher;
  std::optional<Step> watcher_before;
};

/// The steps of all workers, which begin at 0. A barrier without a floor, or one that always
/// passes, has no chances: then only the counts are kept.
class StepCounts {
 public:
  /// Requires: barrier::check(barrier, workers).
  StepCounts(const barrier::Barrier& barrier, std::size_t workers);

  /// Records that a worker at `to - 1` has finished `to`.
  void advance(Step to);
  /// Records that a worker at `last`, which no worker passes, is done: it keeps counting as
  /// reached.
  void finish(Step last);

  /// Smallest and largest step of the running workers; Requires: some run.
  [[nodiscard]] Step min() const noexcept { return groups_.first(); }
  [[nodiscard]] Step max() const noexcept { return groups_.end() - 1; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// Returns the step of the worker in the middle, with done workers ahead of all; nullopt: it is
  /// done.
  [[nodiscard]] std::optional<Step> median() const;

  /// Requires: min() <= step <= max().
  [[nodiscard]] const Group& group(Step step) const { return groups_[step]; }

  /// Adds a worker to those that wait at `step`.
  void join(Step step, MemberId worker);
  /// Removes a worker from those that wait at `step`.
  void leave(Step step, MemberId worker);

  /// Draws once for each waiter: removes those that pass, and calls `release` with each. `patience`
  /// is an exponential variable of mean 1 that is used up by hazard; each pass by chance draws a
  /// new one. This is exact, because the first success of independent trials with chances p_1, p_2,
  /// ... is where the sum of -log(1 - p_i) crosses such a variable.
  template <class Release>
  void let_pass(double& patience, Random& random, Release release) {
    if (hazard_ <= patience) {
      patience -= hazard_;
      return;
    }
    hazard_ = 0;
    for (Step step = groups_.first(); step < groups_.end(); ++step) {
      Group& group = groups_[step];
      if (group.waiters.empty()) continue;
      let_pass(group, patience, random, release);
      hazard_ += hazard_of(group);
    }
  }

 private:
  template <class Release>
  static void let_pass(Group& group, double& patience, Random& random, Release release) {
    if (group.pass >= 1) {
      for (const MemberId worker : group.waiters) release(worker);
      group.waiters.clear();
      return;
    }
    // Waiters that have not drawn yet, in an order in which each is as likely to be next.
    auto left = static_cast<double>(group.waiters.size());
    while (patience < left * group.hazard) {
      left = std::max(0.0, left - std::floor(patience / group.hazard) - 1);
      MemberId& who = group.waiters[random.below(group.waiters.size())];
      const MemberId worker = std::exchange(who, group.waiters.back());
      group.waiters.pop_back();
      release(worker);
      patience = random.exponential(1);
    }
    patience -= left * group.hazard;
  }

  [[nodiscard]] static double hazard_of(const Group& group) {
    return group.waiters.empty() ? 0 : static_cast<double>(group.waiters.size()) * group.hazard;
  }
  void open(Step step);
  void weigh(Group& group) const;

  barrier::Barrier barrier_;
  std::size_t workers_;
  std::size_t running_;
  /// How many others a draw sees; nullopt where there are no chances.
  std::optional<std::size_t> sees_;
  Window<Group> groups_;
  /// Sum over all waiters.
  double hazard_ = 0;
};

}  // namespace starling::sim
