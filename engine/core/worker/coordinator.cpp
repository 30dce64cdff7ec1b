#include "starling/engine/core/worker/coordinator.hpp"

#include <algorithm>
#include <set>

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"

namespace starling::core {

Coordinator::Coordinator(CoordinatorOptions options) : options_(std::move(options)) {}

void Coordinator::add_initial_worker(MemberId worker, Step step) {
  add_worker(worker);
  set_first_step(worker, step);
  highest_allowed_ = std::max(highest_allowed_, step + 1);
  max_lag_ = initial_spread_ = spread().max - spread().min;
  reviewed_min_ = spread().min;
}

void Coordinator::on(const Context& context, const Arrived& arrived) {
  WorkerState& state = workers_.at(arrived.worker);
  if (!state.alive || state.entering || arrived.step < state.step) return;
  if (arrived.step == state.step) {
    // The worker repeats its Arrived. If it is not waiting, the coordinator has answered it
    // already, and the answer may have been lost with the worker's driver.
    if (!state.waiting && !arrived.goes_on) send_decision(context, arrived.worker);
    return;
  }
  const Time step_time = context.now - state.step_started_at;
  state.step_times.add(step_time);
  const bool has_chance =
      barrier::needs_paces(options_.barrier) && !barrier::always_passes(options_.barrier);
  state.pace.record_push(context.now, step_time, has_chance ? context.random.real() : 0);
  set_step(arrived.worker, arrived.step);
  if (stopping_) return release(context, arrived.worker, 0);
  if (arrived.goes_on) {
    state.step_started_at = context.now;
    return reconsider_waiting(context, arrived.worker);
  }
  state.waiting = true;
  state.awaited.reset();
  if (state.tuner) state.tuner->arrive(context.now, state.step, arrived.descent);
  if (!try_to_release(context, arrived.worker)) waiting_.push_back(arrived.worker);
  reconsider_waiting(context, arrived.worker);
}

void Coordinator::on(const Context& context, const Ended& ended) {
  if (!workers_.at(ended.worker).alive) return;
  workers_[ended.worker].has_ended = !ended.leaves;
  if (ended.step > workers_[ended.worker].step) set_step(ended.worker, ended.step);
  stop_tracking(ended.worker);
  workers_[ended.worker].step = barrier::finished;
  workers_[ended.worker].entering = false;
  reconsider_waiting(context, ended.worker);
}

void Coordinator::on(const Context& context, const BatchDone& done) {
  const auto& worker = workers_.at(done.worker);
  if (!worker.alive || done.step != worker.step + 1 || done.step <= hand_in_step_) return;
  hand_in_step_ = done.step;
  for (const MemberId id : live_workers_)
    if (id != done.worker && workers_[id].step < done.step)
      context.send(ToMember{id}, HandIn{done.step});
}

void Coordinator::on_members(const Context& context, const std::vector<MemberId>& left,
                             const std::vector<MemberId>& joined) {
  // Applies all changes before it lets any worker go on, so that it draws only from workers that
  // are members after the changes.
  std::vector<MemberId> gone;
  for (const MemberId id : left) {
    unreported_.erase(id);
    if (forget_worker(id)) gone.push_back(id);
  }
  for (const MemberId worker : joined) on_joined(worker);
  for (const MemberId worker : gone) reconsider_waiting(context, worker);
  if (!knows_all_steps_ && unreported_.empty()) finish_takeover(context);
}

/// Forgets a worker that is gone. Returns false if it is unknown or was forgotten before.
bool Coordinator::forget_worker(MemberId worker) {
  if (worker >= workers_.size() || !workers_[worker].alive) return false;
  stop_tracking(worker);
  workers_[worker].alive = false;
  const std::uint32_t position = live_position_[worker];
  live_workers_[position] = live_workers_.back();
  live_position_[live_workers_[position]] = position;
  live_workers_.pop_back();
  return true;
}

void Coordinator::on_joined(MemberId worker) {
  add_worker(worker);
  workers_[worker].entering = true;
  if (knows_all_steps_) set_first_step(worker, entry_step());
}

/// Adds a worker whose step is not known yet.
void Coordinator::add_worker(MemberId worker) {
  if (worker >= workers_.size()) {
    WorkerState absent;
    absent.alive = false;
    workers_.resize(worker + 1, absent);
    live_position_.resize(worker + 1);
  }
  STARLING_CHECK(!workers_[worker].alive);
  workers_[worker] = {};
  workers_[worker].tuner = barrier::make_tuner(options_.barrier);
  live_position_[worker] = static_cast<std::uint32_t>(live_workers_.size());
  live_workers_.push_back(worker);
}

/// Requires: the worker's step is not known yet.
void Coordinator::set_first_step(MemberId worker, Step step) {
  workers_[worker].step = step;
  if (step < barrier::finished) ++workers_at_[step];
}

// --- steps --------------------------------------------------------------------------------------

/// Returns the step at which a joining worker begins: `finished` if no worker runs and a worker of
/// a present member has ended; else one before `highest_allowed_` in bulk-synchronous jobs; else
/// the lowest step of the running workers, or of the last ones that ran.
Step Coordinator::entry_step() const {
  if (workers_at_.empty() && has_ended_worker()) return barrier::finished;
  if (barrier::is_bsp(options_.barrier)) return highest_allowed_ - 1;
  return workers_at_.empty() ? reviewed_min_ : workers_at_.begin()->first;
}

/// Workers that have left do not count: they may have ended only because they left.
bool Coordinator::has_ended_worker() const {
  return std::ranges::any_of(live_workers_, [&](MemberId id) { return workers_[id].has_ended; });
}

void Coordinator::on(const Context& context, const Stop&) {
  stopping_ = true;
  for (const MemberId id : std::exchange(waiting_, {})) release(context, id, 0);
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
  WorkerState& state = workers_[id];
  const auto former = workers_at_.find(state.step);
  if (--former->second == 0) workers_at_.erase(former);
  state.step = step;
  ++workers_at_[step];
  const auto [min, max] = spread();
  max_lag_ = std::max(max_lag_, max - min);
  const auto bound = barrier::spread_bound(options_.barrier);
  // Every worker makes its first step without asking, even if it starts ahead of others.
  STARLING_CHECK(!bound || max_lag_ <= std::max(*bound, initial_spread_ + 1));
}

/// Stops counting a worker's step and ends its wait. A worker that has ended may still be drawn.
void Coordinator::stop_tracking(MemberId id) {
  const auto entry = workers_at_.find(workers_[id].step);
  if (entry != workers_at_.end() && --entry->second == 0) workers_at_.erase(entry);
  if (std::exchange(workers_[id].waiting, false)) std::erase(waiting_, id);
  set_next_draw(id, Time::max());
}

Coordinator::Spread Coordinator::spread() const {
  if (workers_at_.empty()) return {};
  return {workers_at_.begin()->first, workers_at_.rbegin()->first};
}

/// `moved` has made a step, has ended or is gone: lets all waiting workers go on that may do so
/// now.
void Coordinator::reconsider_waiting(const Context& context, MemberId moved) {
  const Step former_min = reviewed_min_;
  if (!workers_at_.empty()) reviewed_min_ = spread().min;
  if (barrier::has_rounds(options_.barrier)) return begin_round(context, moved);
  // A rule with a floor, over all workers, can only decide otherwise once the lowest step has
  // risen.
  const bool depends_on_min_only =
      !barrier::is_sampled(options_.barrier) && barrier::floor(options_.barrier, 0).has_value();
  if (depends_on_min_only && former_min == reviewed_min_) return;
  // Without draws and paces, the rule decides alike for all workers at one step.
  const bool depends_on_step =
      !barrier::is_sampled(options_.barrier) && !barrier::needs_paces(options_.barrier);
  std::set<Step> refused;
  std::erase_if(waiting_, [&](MemberId id) {
    const WorkerState& state = workers_[id];
    if (id == moved || !should_reconsider(state, moved)) return false;
    if (!state.entering && refused.contains(state.step)) return false;
    // Under a rule over all workers, the worker whose move lets this one go on is the one for which
    // it has waited.
    if (!barrier::is_sampled(options_.barrier)) workers_[id].awaited = moved;
    if (try_to_release(context, id)) return true;
    if (depends_on_step) refused.insert(state.step);
    return false;
  });
}

/// Rules with rounds: once all running workers wait, lets them go on. `moved` was the last of them
/// to arrive, has ended or is gone; nullopt at the end of a takeover.
void Coordinator::begin_round(const Context& context, std::optional<MemberId> moved) {
  const auto is_going = [&](MemberId id) {
    return workers_[id].step < barrier::finished && !workers_[id].waiting;
  };
  if (!knows_all_steps_ || waiting_.empty() || std::ranges::any_of(live_workers_, is_going)) return;
  seen_paces_.clear();
  for (const MemberId id : waiting_) seen_paces_.push_back(pace_of(id, context.now));
  const std::vector<Step> until = barrier::round(options_.barrier, seen_paces_);
  const std::vector<MemberId> round = std::exchange(waiting_, {});
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (round[i] != moved) workers_[round[i]].awaited = moved;
    release(context, round[i], until[i]);
  }
}

/// True if a waiting worker, with `state`, may have to draw or be checked again after `moved`
/// moved.
bool Coordinator::should_reconsider(const WorkerState& state, MemberId moved) const {
  if (!barrier::is_sampled(options_.barrier) || options_.recheck.arrival) return true;
  const bool decided_draw = state.laggard
                                ? state.laggard == moved
                                : std::ranges::find(state.drawn, moved) != state.drawn.end();
  const WorkerState& other = workers_[moved];
  // Whatever the recheck, nobody waits for a worker that is gone. One that enters now was gone, and
  // has joined again.
  if (!other.alive || other.entering) return decided_draw;
  return options_.recheck.notify && state.laggard == moved &&
         other.step >= barrier::floor(barrier_of(state), state.step).value_or(0);
}

bool Coordinator::try_to_release(const Context& context, MemberId id) {
  if (!knows_all_steps_) return false;
  WorkerState& state = workers_[id];
  const Step until = state.entering ? state.step + 1 : permitted_step(context, id);
  if (until > state.step) {
    release(context, id, until);
    return true;
  }
  if (!barrier::is_sampled(options_.barrier)) return false;
  state.awaited = state.laggard;
  const auto& interval = options_.recheck.interval;
  // If a step of another worker makes this one draw again, it needs no timer.
  const bool is_woken = options_.recheck.arrival || (options_.recheck.notify && state.laggard);
  if (!interval && is_woken) return false;
  const bool automatic = !interval || *interval == barrier::Recheck::automatic;
  set_next_draw(id, context.now + (automatic ? state.step_times.recheck_interval() : *interval));
  timer_.ensure(context, state.next_draw_at);
  return false;
}

Step Coordinator::permitted_step(const Context& context, MemberId id) {
  const WorkerState& state = workers_[id];
  const Step own = state.step;
  if (live_workers_.size() == 1) return own + 1;  // no rule holds a worker that is alone
  if (!barrier::needs_paces(options_.barrier)) return may_pass(context, id) ? own + 1 : own;
  const bool is_sampled = barrier::is_sampled(options_.barrier);
  if (barrier::always_passes(options_.barrier) ||
      (is_sampled && barrier::floor(options_.barrier, own) == Step{0}))
    return own + 1;
  if (is_sampled) draw_others(context, id);
  seen_paces_.clear();
  for (const MemberId other : is_sampled ? state.drawn : live_workers_)
    if (other != id) seen_paces_.push_back(pace_of(other, context.now));
  const Step until = barrier::run_to(options_.barrier, pace_of(id, context.now), seen_paces_);
  if (is_sampled && !state.drawn.empty()) count_draw(until > own);
  return until;
}

barrier::Pace Coordinator::pace_of(MemberId id, Time now) const {
  const WorkerState& state = workers_[id];
  barrier::Pace pace = state.pace;
  pace.step = state.step;
  pace.waits = state.waiting && pace.pushed_at < now;
  return pace;
}

bool Coordinator::may_pass(const Context& context, MemberId id) {
  if (barrier::always_passes(options_.barrier)) return true;
  const Step own = workers_[id].step;
  const auto floor = barrier::floor(barrier_of(workers_[id]), own);
  if (floor == Step{0}) return true;
  const bool is_sampled = barrier::is_sampled(options_.barrier);
  if (!is_sampled && floor) return spread().min >= *floor;
  if (is_sampled) draw_others(context, id);
  const WorkerState& state = workers_[id];
  if (is_sampled && state.drawn.empty()) return true;
  seen_steps_.clear();
  for (const MemberId other : is_sampled ? state.drawn : live_workers_)
    if (other != id) seen_steps_.push_back(workers_[other].step);
  const bool passes = barrier::admits(barrier_of(state), own, seen_steps_);
  if (is_sampled) count_draw(passes);
  return passes;
}

void Coordinator::draw_others(const Context& context, MemberId id) {
  WorkerState& state = workers_[id];
  const barrier::Barrier& present = barrier_of(state);
  const auto others = static_cast<std::uint32_t>(live_workers_.size() - 1);
  const auto beta = static_cast<std::uint32_t>(barrier::seen_workers(present, others));
  state.drawn.clear();
  state.laggard.reset();
  if (beta == 0) return;
  const auto floor = barrier::floor(present, state.step);
  barrier::draw(others, beta, context.random, drawn_positions_);
  if (state.tuner) state.tuner->begin_draw();
  for (const std::uint32_t pick : drawn_positions_) {
    const MemberId other = live_workers_[pick + (pick >= live_position_[id] ? 1 : 0)];
    state.drawn.push_back(other);
    if (state.tuner) state.tuner->see(workers_[other].step);
    if (floor && !state.laggard && workers_[other].step < *floor) state.laggard = other;
  }
}

barrier::TunedSum Coordinator::tuned() const {
  barrier::TunedSum sum;
  for (const MemberId id : live_workers_) sum.add(workers_[id].tuner);
  return sum;
}

void Coordinator::count_draw(bool passes) {
  ++draws_;
  passes_ += passes ? 1 : 0;
}

/// Sets the time at which `id` draws again; Time::max() clears it.
void Coordinator::set_next_draw(MemberId id, Time at) {
  WorkerState& state = workers_[id];
  if (state.next_draw_at != Time::max()) next_draws_.erase({state.next_draw_at, id});
  state.next_draw_at = at;
  if (at != Time::max()) next_draws_.emplace(at, id);
}

/// Sends a waiting or entering worker Proceed, or Stop if the job stops.
void Coordinator::release(const Context& context, MemberId id, Step until) {
  WorkerState& state = workers_[id];
  state.run_end = until > state.step + 1 ? until : 0;
  state.waiting = state.entering = false;
  state.step_started_at = context.now;
  state.was_sent_stop = stopping_;
  if (state.tuner) state.tuner->pass(context.now);
  if (!stopping_) highest_allowed_ = std::max(highest_allowed_, until);
  set_next_draw(id, Time::max());
  send_decision(context, id);
}

/// Sends a worker the last decision for it, again if it was sent before. A worker that was sent
/// Proceed before the job stopped is sent Proceed again, because the others make that round too.
void Coordinator::send_decision(const Context& context, MemberId id) const {
  if (workers_[id].was_sent_stop)
    context.send(ToMember{id}, Stop{});
  else
    context.send(ToMember{id},
                 Proceed{workers_[id].step, workers_[id].run_end,
                         std::min(spread().min, workers_[id].step), workers_[id].awaited});
}

}  // namespace starling::core
