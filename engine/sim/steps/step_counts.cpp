#include "starling/engine/sim/steps/step_counts.hpp"

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"

namespace starling::sim {

StepCounts::StepCounts(const barrier::Barrier& barrier, std::size_t workers)
    : barrier_(barrier), workers_(workers), running_(workers) {
  if (!barrier::always_passes(barrier) && barrier::floor(barrier, 0))
    sample_size_ = barrier::seen_workers(barrier, workers - 1);
  open_group(0);
  groups_[0].running = workers;
}

/// Adds the group of a step that no worker has finished before.
void StepCounts::open_group(Step step) {
  StepGroup& group = groups_.push();
  group.running = 0;
  group.waiters.clear();
  group.newest_watcher.reset();
  if (!sample_size_) return;
  group.floor = *barrier::floor(barrier_, step);
  STARLING_CHECK(group.floor <= step);  // else the slowest worker could never pass
  group.reached = workers_;
  for (Step below = groups_.first(); below < group.floor; ++below)
    group.reached -= groups_[below].running;
  if (group.floor >= groups_.first())
    group.next_watcher = std::exchange(groups_[group.floor].newest_watcher, step);
  update_probability(group);
}

void StepCounts::advance(Step to) {
  if (to == groups_.end()) open_group(to);
  --groups_[to - 1].running;
  StepGroup& arrived = groups_[to];
  ++arrived.running;
  for (auto step = arrived.newest_watcher; step; step = groups_[*step].next_watcher) {
    StepGroup& group = groups_[*step];
    const double before = hazard_of(group);
    ++group.reached;
    update_probability(group);
    hazard_ += hazard_of(group) - before;
  }
  while (groups_[groups_.first()].running == 0 && running_ > 0) groups_.pop();
}

void StepCounts::finish(Step last) {
  --running_;
  --groups_[last].running;
  while (running_ > 0 && groups_[groups_.first()].running == 0) groups_.pop();
}

std::optional<Step> StepCounts::median() const {
  std::size_t before = 0;
  for (Step step = groups_.first(); step < groups_.end(); ++step) {
    before += groups_[step].running;
    if (before > workers_ / 2) return step;
  }
  return std::nullopt;
}

void StepCounts::add_waiter(Step step, MemberId worker) {
  StepGroup& group = groups_[step];
  group.waiters.push_back(worker);
  hazard_ += group.hazard;
}

void StepCounts::remove_waiter(Step step, MemberId worker) {
  StepGroup& group = groups_[step];
  STARLING_CHECK(std::erase(group.waiters, worker) == 1);
  hazard_ -= group.hazard;
}

/// Computes the probability that a draw of the group passes. A worker of the group has reached the
/// floor but does not draw itself, so `reached` - 1 of the others have reached it.
void StepCounts::update_probability(StepGroup& group) const {
  if (group.reached == workers_) {
    group.pass = 1;
  } else {
    group.pass = group.reached == 0
                     ? 0
                     : barrier::pass_probability(group.reached - 1, workers_ - 1, *sample_size_);
  }
  group.hazard = -std::log1p(-group.pass);
}

}  // namespace starling::sim
