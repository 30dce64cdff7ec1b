/// Who stands at which step, and what that makes of each step's chance to pass. Not thread-safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/random.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/sim/ring_by_step.hpp"

namespace starling::sim {

using core::MemberId;
using core::Step;

/// The workers that have finished the same step. Among them all waiters have the same chance.
struct Group {
  /// How many are there and still run.
  std::size_t running = 0;
  /// What everyone they see must have reached, and how many of all workers have.
  Step floor = 0;
  std::size_t reached = 0;
  /// The chance that a draw passes, and -log(1 - it), which adds up over independent draws.
  double pass = 1;
  double hazard = 0;
  /// Those of them that wait and are drawn for at each arrival.
  std::vector<MemberId> waiters;
  /// The last group opened whose floor is this step, and the one opened before it with the same
  /// floor as this.
  std::optional<Step> watcher;
  std::optional<Step> watcher_before;
};

/// All workers begin at step 0. A barrier without a floor, and one that always passes, has no
/// chances: for those only the counts are kept.
class StepCounts {
 public:
  /// Requires: barrier::check(barrier, workers).
  StepCounts(const barrier::Barrier& barrier, std::size_t workers);

  /// A worker that stood at `to - 1` has finished `to`.
  void advance(Step to);
  /// A worker that stands at `last`, which nobody passes, is done: it keeps counting as reached.
  void finish(Step last);

  /// Smallest and largest step of the running workers; Requires: some run.
  [[nodiscard]] Step min() const noexcept { return groups_.first(); }
  [[nodiscard]] Step max() const noexcept { return groups_.end() - 1; }
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// The step of the worker in the middle, the done ones being ahead of all; nullopt: it is done.
  [[nodiscard]] std::optional<Step> median() const;

  /// Requires: min() <= step <= max().
  [[nodiscard]] const Group& group(Step step) const { return groups_[step]; }

  /// Adds one to those who wait at `step`.
  void join(Step step, MemberId worker);
  /// Takes one out again.
  void leave(Step step, MemberId worker);

  /// Each waiter draws once: takes out those that pass, and shows each to `release`. `patience` is
  /// an exponential variable of mean 1 that is used up by hazard, a new one being drawn at each
  /// pass. Exact, as the first success of independent trials with chances p_1, p_2, ... is where
  /// the sum of -log(1 - p_i) crosses such a variable.
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
    // Those who have not drawn yet, in an order in which each is as likely to be next.
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
  /// How many others a draw sees; nullopt: there are no chances.
  std::optional<std::size_t> sees_;
  Window<Group> groups_;
  /// Of all waiters.
  double hazard_ = 0;
};

}  // namespace starling::sim
