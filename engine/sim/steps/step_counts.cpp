#include "starling/engine/sim/steps/step_counts.hpp"

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"

namespace starling::sim {

StepCounts::StepCounts(const barrier::Barrier& barrier, std::size_t workers)
    : barrier_(barrier), workers_(workers), running_(workers) {
  if (!barrier::always_passes(barrier) && barrier::floor(barrier, 0))
    sees_ = barrier::observes(barrier, workers - 1);
  open(0);
  groups_[0].running = workers;
}

/// Begins the group of a step that no worker has finished yet.
void StepCounts::open(Step step) {
  Group& group = groups_.push();
  group.running = 0;
  group.waiters.clear();
  group.watcher.reset();
  if (!sees_) return;
  group.floor = *barrier::floor(barrier_, step);
  STARLING_CHECK(group.floor <= step);  // else the slowest could never pass
  group.reached = workers_;
  for (Step below = groups_.first(); below < group.floor; ++below)
    group.reached -= groups_[below].running;
  if (group.floor >= groups_.first())
    group.watcher_before = std::exchange(groups_[group.floor].watcher, step);
  weigh(group);
}

void StepCounts::advance(Step to) {
  if (to == groups_.end()) open(to);
  --groups_[to - 1].running;
  Group& arrived = groups_[to];
  ++arrived.running;
  for (auto step = arrived.watcher; step; step = groups_[*step].watcher_before) {
    Group& group = groups_[*step];
    const double before = hazard_of(group);
    ++group.reached;
    weigh(group);
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

void StepCounts::join(Step step, MemberId worker) {
  Group& group = groups_[step];
  group.waiters.push_back(worker);
  hazard_ += group.hazard;
}

void StepCounts::leave(Step step, MemberId worker) {
  Group& group = groups_[step];
  STARLING_CHECK(std::erase(group.waiters, worker) == 1);
  hazard_ -= group.hazard;
}

/// Recomputes the group's chance. A worker of the group does not draw itself, and has reached its
/// own floor.
void StepCounts::weigh(Group& group) const {
  if (group.reached == workers_) {
    group.pass = 1;
  } else {
    group.pass =
        group.reached == 0 ? 0 : barrier::pass_probability(group.reached - 1, workers_ - 1, *sees_);
  }
  group.hazard = -std::log1p(-group.pass);
}

}  // namespace starling::sim
