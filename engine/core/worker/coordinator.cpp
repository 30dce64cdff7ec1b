#include "starling/engine/core/worker/coordinator.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"

namespace starling::core {

Coordinator::Coordinator(CoordinatorOptions options) : options_(std::move(options)) {
  for (MemberId id = 0; id < options_.first.size(); ++id) add_founder(id, options_.first[id]);
}

void Coordinator::add_founder(MemberId worker, Step step) {
  add_worker(worker);
  set_first_step(worker, step);
  highest_allowed_ = std::max(highest_allowed_, step + 1);
  spread_max_ = initial_spread_ = spread().max - spread().min;
}

void Coordinator::on(const Context& context, const Arrived& arrived) {
  Member& member = members_.at(arrived.worker);
  if (!member.alive || member.entering || arrived.step < member.step) return;
  if (arrived.step == member.step) {
    // The worker repeats its Arrived. If it does not wait here, it was answered before, and the
    // answer may have been lost with its actor.
    if (!member.waiting) send_decision(context, arrived.worker);
    return;
  }
  member.step_times.add(context.now - member.step_started_at);
  set_step(arrived.worker, arrived.step);
  if (stopping_) return release(context, arrived.worker);
  member.waiting = true;
  if (!try_to_release(context, arrived.worker)) waiting_.push_back(arrived.worker);
  reconsider_waiting(context, arrived.worker);
}

void Coordinator::on(const Context& context, const Ended& ended) {
  if (!members_.at(ended.worker).alive) return;
  any_ended_ = true;
  if (ended.step > members_[ended.worker].step) set_step(ended.worker, ended.step);
  stop_tracking(ended.worker);
  members_[ended.worker].step = barrier::finished;
  members_[ended.worker].entering = false;
  reconsider_waiting(context, ended.worker);
}

void Coordinator::on_left(const Context& context, MemberId worker) {
  if (!forget_worker(worker)) return;
  reconsider_waiting(context, worker);
}

void Coordinator::on_members(const Context& context, const std::vector<MemberId>& left,
                             const std::vector<MemberId>& joined) {
  // Applies all changes before it lets any worker go on, so that draws fall on the new members.
  std::vector<MemberId> gone;
  for (const MemberId id : left) {
    awaited_.erase(id);
    if (forget_worker(id)) gone.push_back(id);
  }
  for (const MemberId worker : joined) on_joined(worker);
  for (const MemberId worker : gone) reconsider_waiting(context, worker);
  if (!knows_all_ && awaited_.empty()) finish_takeover(context);
}

/// Returns false if the worker is unknown or was forgotten before.
bool Coordinator::forget_worker(MemberId worker) {
  if (worker >= members_.size() || !members_[worker].alive) return false;
  stop_tracking(worker);
  members_[worker].alive = false;
  const std::uint32_t at = alive_position_[worker];
  alive_[at] = alive_.back();
  alive_position_[alive_[at]] = at;
  alive_.pop_back();
  return true;
}

void Coordinator::on_joined(MemberId worker) {
  add_worker(worker);
  members_[worker].entering = true;
  if (knows_all_) set_first_step(worker, entry_step());
}

/// Adds a worker that has no step yet.
void Coordinator::add_worker(MemberId worker) {
  if (worker >= members_.size()) {
    Member nobody;
    nobody.alive = false;
    members_.resize(worker + 1, nobody);
    alive_position_.resize(worker + 1);
  }
  STARLING_CHECK(!members_[worker].alive);
  members_[worker] = {};
  alive_position_[worker] = static_cast<std::uint32_t>(alive_.size());
  alive_.push_back(worker);
}

/// Requires: the worker has no step yet.
void Coordinator::set_first_step(MemberId worker, Step step) {
  members_[worker].step = step;
  if (step < barrier::finished) ++workers_at_[step];
}

// --- taking over --------------------------------------------------------------------------------

void Coordinator::take_over(const std::vector<MemberId>& workers,
                            const std::vector<MemberId>& owners) {
  STARLING_CHECK(alive_.empty());
  for (const MemberId worker : workers) add_worker(worker);
  awaited_.insert(workers.begin(), workers.end());
  awaited_.insert(owners.begin(), owners.end());
  knows_all_ = awaited_.empty();
}

void Coordinator::on(const Context& context, const WorkerStatus& status) {
  if (awaited_.erase(status.member) > 0) {
    record_status(context, status);
    if (awaited_.empty()) finish_takeover(context);
  } else if (status.phase == WorkerStatus::Phase::entering) {
    Member& member = members_.at(status.member);
    if (!member.alive || !member.entering || std::exchange(member.waiting, true)) return;
    if (!try_to_release(context, status.member)) waiting_.push_back(status.member);
  }
}

/// Records the status of a member that the takeover awaited.
void Coordinator::record_status(const Context& context, const WorkerStatus& status) {
  using enum WorkerStatus::Phase;
  highest_held_ = std::max(highest_held_, status.held);
  if (status.phase == idle) return;
  Member& member = members_.at(status.member);
  member.step_started_at = context.now;
  member.entering = status.phase == entering;
  member.waiting = status.phase == entering || status.phase == waiting;
  if (member.waiting) waiting_.push_back(status.member);
  if (status.phase == ended) any_ended_ = true;
  if (status.phase == going || status.phase == waiting) set_first_step(status.member, status.step);
}

void Coordinator::finish_takeover(const Context& context) {
  knows_all_ = true;
  // A joining worker begins with the slowest. Only bulk-synchronous jobs use highest_allowed_; in
  // them no worker, gone or not, was allowed to make more than the step after the slowest's
  // step; if all workers are gone, no more than the step after the highest that an owner holds.
  reviewed_min_ = workers_at_.empty() ? highest_held_ : workers_at_.begin()->first;
  highest_allowed_ = reviewed_min_ + 1;
  const Step first = entry_step();
  for (const MemberId worker : alive_)
    if (members_[worker].entering) set_first_step(worker, first);
  const auto [min, max] = spread();
  spread_max_ = initial_spread_ = max - min;
  std::erase_if(waiting_, [&](MemberId id) { return try_to_release(context, id); });
}

// --- steps --------------------------------------------------------------------------------------

/// Returns the step at which a joining worker begins: `finished` if no worker runs and one has
/// ended; else one before `highest_allowed_` in bulk-synchronous jobs; else the lowest step of the
/// running workers, or of the last ones that ran.
Step Coordinator::entry_step() const {
  if (barrier::is_bsp(options_.barrier) && !(workers_at_.empty() && any_ended_))
    return highest_allowed_ - 1;
  if (!workers_at_.empty()) return workers_at_.begin()->first;
  return any_ended_ ? barrier::finished : reviewed_min_;
}

void Coordinator::on(const Context& context, const Stop&) {
  stopping_ = true;
  for (const MemberId id : std::exchange(waiting_, {})) release(context, id);
}

void Coordinator::on_timer(const Context& context) {
  timer_.remove_due(context.now);
  std::vector<MemberId> due;
  for (const auto& [at, id] : next_draws_) {
    if (at > context.now) break;
    due.push_back(id);
  }
  for (const MemberId id : due)
    if (try_to_release(context, id)) std::erase(waiting_, id);
  if (!next_draws_.empty()) timer_.ensure(context, next_draws_.begin()->first);
}

void Coordinator::set_step(MemberId id, Step step) {
  Member& member = members_[id];
  const auto old = workers_at_.find(member.step);
  if (--old->second == 0) workers_at_.erase(old);
  member.step = step;
  ++workers_at_[step];
  const auto [min, max] = spread();
  spread_max_ = std::max(spread_max_, max - min);
  const auto bound = barrier::spread_bound(options_.barrier);
  // Each worker makes its first step without asking, also one that starts ahead of others.
  STARLING_CHECK(!bound || spread_max_ <= std::max(*bound, initial_spread_ + 1));
}

/// Stops counting a worker's step and ends its wait. A worker that has ended may still be drawn.
void Coordinator::stop_tracking(MemberId id) {
  const auto place = workers_at_.find(members_[id].step);
  if (place != workers_at_.end() && --place->second == 0) workers_at_.erase(place);
  if (std::exchange(members_[id].waiting, false)) std::erase(waiting_, id);
  set_next_draw(id, Time::max());
}

Coordinator::Spread Coordinator::spread() const {
  if (workers_at_.empty()) return {};
  return {workers_at_.begin()->first, workers_at_.rbegin()->first};
}

/// Lets all waiting workers go on that now may, after `moved` has made a step, has ended or is
/// gone.
void Coordinator::reconsider_waiting(const Context& context, MemberId moved) {
  // A rule with a floor, over all workers, decides differently only after the slowest has moved.
  const Step slowest = std::exchange(reviewed_min_, spread().min);
  const bool by_slowest =
      !options_.barrier.sample && barrier::floor(options_.barrier, 0).has_value();
  if (by_slowest && slowest == reviewed_min_) return;
  std::erase_if(waiting_, [&](MemberId id) {
    return id != moved && should_reconsider(members_[id], moved) && try_to_release(context, id);
  });
}

bool Coordinator::should_reconsider(const Member& member, MemberId moved) const {
  if (!options_.barrier.sample || options_.recheck.arrival) return true;
  if (!options_.recheck.notify || member.laggard != moved) return false;
  const Member& other = members_[moved];
  return !other.alive || other.step >= barrier::floor(options_.barrier, member.step).value_or(0);
}

bool Coordinator::try_to_release(const Context& context, MemberId id) {
  if (!knows_all_) return false;
  if (members_[id].entering || may_pass(context, id)) {
    release(context, id);
    return true;
  }
  if (!options_.barrier.sample) return false;
  Member& member = members_[id];
  const auto& interval = options_.recheck.interval;
  // A step of another worker makes this one draw again, without a timer.
  const bool is_woken = options_.recheck.arrival || (options_.recheck.notify && member.laggard);
  if (!interval && is_woken) return false;
  const bool automatic = !interval || *interval == barrier::Recheck::automatic;
  set_next_draw(id, context.now + (automatic ? member.step_times.recheck_interval() : *interval));
  timer_.ensure(context, member.next_draw_at);
  return false;
}

bool Coordinator::may_pass(const Context& context, MemberId id) {
  if (barrier::always_passes(options_.barrier)) return true;
  const Step own = members_[id].step;
  const auto floor = barrier::floor(options_.barrier, own);
  if (floor == Step{0}) return true;
  if (options_.barrier.sample) return sample_admits(context, id);
  if (floor) return spread().min >= *floor;
  seen_steps_.clear();
  for (const MemberId other : alive_)
    if (other != id) seen_steps_.push_back(members_[other].step);
  return barrier::admits(options_.barrier, own, seen_steps_);
}

bool Coordinator::sample_admits(const Context& context, MemberId id) {
  Member& member = members_[id];
  const auto others = static_cast<std::uint32_t>(alive_.size() - 1);
  const auto beta = static_cast<std::uint32_t>(barrier::seen_workers(options_.barrier, others));
  if (beta == 0) return true;
  const auto floor = barrier::floor(options_.barrier, member.step);
  barrier::draw(others, beta, context.random, drawn_positions_);
  seen_steps_.clear();
  member.drawn.clear();
  member.laggard.reset();
  for (const std::uint32_t pick : drawn_positions_) {
    const MemberId other = alive_[pick + (pick >= alive_position_[id] ? 1 : 0)];
    member.drawn.push_back(other);
    seen_steps_.push_back(members_[other].step);
    if (floor && !member.laggard && seen_steps_.back() < *floor) member.laggard = other;
  }
  const bool pass = barrier::admits(options_.barrier, member.step, seen_steps_);
  ++draws_;
  passes_ += pass ? 1 : 0;
  return pass;
}

/// Sets the time at which `id` draws again; Time::max() clears it.
void Coordinator::set_next_draw(MemberId id, Time at) {
  Member& member = members_[id];
  if (member.next_draw_at != Time::max()) next_draws_.erase({member.next_draw_at, id});
  member.next_draw_at = at;
  if (at != Time::max()) next_draws_.emplace(at, id);
}

/// Sends a waiting or entering worker Proceed, or Stop if the job stops.
void Coordinator::release(const Context& context, MemberId id) {
  Member& member = members_[id];
  member.waiting = member.entering = false;
  member.step_started_at = context.now;
  member.was_sent_stop = stopping_;
  if (!stopping_) highest_allowed_ = std::max(highest_allowed_, member.step + 1);
  set_next_draw(id, Time::max());
  send_decision(context, id);
}

/// Sends a worker the last decision for it. A worker that was sent Proceed before the job stopped
/// is sent Proceed again; with a Stop it would miss a round that the others make.
void Coordinator::send_decision(const Context& context, MemberId id) const {
  if (members_[id].was_sent_stop)
    context.send(ToWorker{id}, Stop{});
  else
    context.send(ToWorker{id}, Proceed{members_[id].step});
}

}  // namespace starling::core
