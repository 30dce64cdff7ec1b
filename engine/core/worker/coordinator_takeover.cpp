/// How a coordinator takes over from one that is gone: it awaits the status of each worker and
/// owner.
#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/core/worker/coordinator.hpp"

namespace starling::core {

void Coordinator::take_over(const std::vector<MemberId>& workers,
                            const std::vector<MemberId>& owners) {
  STARLING_CHECK(live_workers_.empty());
  for (const MemberId worker : workers) add_worker(worker);
  unreported_.insert(workers.begin(), workers.end());
  unreported_.insert(owners.begin(), owners.end());
  knows_all_steps_ = unreported_.empty();
}

void Coordinator::on(const Context& context, const WorkerStatus& status) {
  if (unreported_.erase(status.member) > 0) {
    record_status(context, status);
    if (unreported_.empty()) finish_takeover(context);
  } else if (status.phase == WorkerStatus::Phase::entering) {
    WorkerState& state = workers_.at(status.member);
    if (!state.alive || !state.entering || std::exchange(state.waiting, true)) return;
    if (!try_to_release(context, status.member)) waiting_.push_back(status.member);
  }
}

/// Records the status of a member that the takeover awaited.
void Coordinator::record_status(const Context& context, const WorkerStatus& status) {
  using enum WorkerStatus::Phase;
  highest_held_ = std::max(highest_held_, status.held);
  if (status.phase == idle) return;
  WorkerState& state = workers_.at(status.member);
  state.step_started_at = context.now;
  state.entering = status.phase == entering;
  state.waiting = status.phase == entering || status.phase == waiting;
  if (state.waiting) waiting_.push_back(status.member);
  state.has_ended = status.phase == ended && !status.leaves;
  if (status.phase == going || status.phase == waiting) set_first_step(status.member, status.step);
}

void Coordinator::finish_takeover(const Context& context) {
  knows_all_steps_ = true;
  // A joining worker begins at the step of the slowest worker. Only bulk-synchronous jobs use
  // highest_allowed_. In these jobs the former coordinator allowed no worker more than the step
  // after the slowest worker's; if all workers are gone, no more than the step after the highest
  // that an owner holds.
  reviewed_min_ = workers_at_.empty() ? highest_held_ : workers_at_.begin()->first;
  highest_allowed_ = reviewed_min_ + 1;
  const Step first = entry_step();
  for (const MemberId worker : live_workers_)
    if (workers_[worker].entering) set_first_step(worker, first);
  const auto [min, max] = spread();
  max_lag_ = initial_spread_ = max - min;
  std::erase_if(waiting_, [&](MemberId id) { return try_to_release(context, id); });
  if (barrier::has_rounds(options_.barrier)) begin_round(context, std::nullopt);
}

}  // namespace starling::core
