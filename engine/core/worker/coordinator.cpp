#include "starling/engine/core/worker/coordinator.hpp"

#include <algorithm>

#include "starling/barrier/sampling.hpp"
#include "starling/base/check.hpp"

namespace starling::core {

Coordinator::Coordinator(CoordinatorOptions options) : options_(std::move(options)) {
  for (MemberId id = 0; id < options_.first.size(); ++id) on_founded(id, options_.first[id]);
}

void Coordinator::on_founded(MemberId worker, Step step) {
  add(worker);
  place(worker, step);
  frontier_ = std::max(frontier_, step + 1);
  spread_max_ = first_spread_ = spread().max - spread().min;
}

void Coordinator::on(const Context& context, const Arrived& arrived) {
  Member& member = members_.at(arrived.worker);
  if (!member.alive || member.entering || arrived.step < member.step) return;
  if (arrived.step == member.step) {
    // A repeated Arrived. A worker that does not wait was answered, and may have lost the answer
    // with its actor.
    if (!member.waiting) send_decision(context, arrived.worker);
    return;
  }
  member.step_times.add(context.now - member.began);
  set_step(arrived.worker, arrived.step);
  if (stopping_) return answer(context, arrived.worker);
  member.waiting = true;
  if (!consider(context, arrived.worker)) waiting_.push_back(arrived.worker);
  review(context, arrived.worker);
}

void Coordinator::on(const Context& context, const Ended& ended) {
  if (!members_.at(ended.worker).alive) return;
  ended_ = true;
  if (ended.step > members_[ended.worker].step) set_step(ended.worker, ended.step);
  remove(ended.worker);
  members_[ended.worker].step = barrier::finished;
  members_[ended.worker].entering = false;
  review(context, ended.worker);
}

void Coordinator::on_left(const Context& context, MemberId worker) {
  if (!dismiss(worker)) return;
  review(context, worker);
}

void Coordinator::on_members(const Context& context, const std::vector<MemberId>& left,
                             const std::vector<MemberId>& joined) {
  // Applies all changes before it lets any worker go on, so that draws fall on the new members.
  std::vector<MemberId> gone;
  for (const MemberId id : left) {
    unheard_.erase(id);
    if (dismiss(id)) gone.push_back(id);
  }
  for (const MemberId worker : joined) on_joined(worker);
  for (const MemberId worker : gone) review(context, worker);
  if (!knows_all_ && unheard_.empty()) know_all(context);
}

/// Forgets a worker; returns false where it is unknown or was forgotten before.
bool Coordinator::dismiss(MemberId worker) {
  if (worker >= members_.size() || !members_[worker].alive) return false;
  remove(worker);
  members_[worker].alive = false;
  const std::uint32_t at = position_[worker];
  alive_[at] = alive_.back();
  position_[alive_[at]] = at;
  alive_.pop_back();
  return true;
}

void Coordinator::on_joined(MemberId worker) {
  add(worker);
  members_[worker].entering = true;
  if (knows_all_) place(worker, lowest());
}

/// Adds a worker that has no step yet.
void Coordinator::add(MemberId worker) {
  if (worker >= members_.size()) {
    Member nobody;
    nobody.alive = false;
    members_.resize(worker + 1, nobody);
    position_.resize(worker + 1);
  }
  STARLING_CHECK(!members_[worker].alive);
  members_[worker] = {};
  position_[worker] = static_cast<std::uint32_t>(alive_.size());
  alive_.push_back(worker);
}

/// Sets a worker's first step. Requires: it has no step yet.
void Coordinator::place(MemberId worker, Step step) {
  members_[worker].step = step;
  if (step < barrier::finished) ++workers_at_[step];
}

// --- taking over --------------------------------------------------------------------------------

void Coordinator::take_over(const std::vector<MemberId>& workers,
                            const std::vector<MemberId>& owners) {
  STARLING_CHECK(alive_.empty());
  for (const MemberId worker : workers) add(worker);
  unheard_.insert(workers.begin(), workers.end());
  unheard_.insert(owners.begin(), owners.end());
  knows_all_ = unheard_.empty();
}

void Coordinator::on(const Context& context, const WorkerStatus& status) {
  if (unheard_.erase(status.member) > 0) {
    book(context, status);
    if (unheard_.empty()) know_all(context);
  } else if (status.phase == WorkerStatus::Phase::entering) {
    Member& member = members_.at(status.member);
    if (!member.alive || !member.entering || std::exchange(member.waiting, true)) return;
    if (!consider(context, status.member)) waiting_.push_back(status.member);
  }
}

/// Records the status of a member that was awaited.
void Coordinator::book(const Context& context, const WorkerStatus& status) {
  using enum WorkerStatus::Phase;
  held_ = std::max(held_, status.held);
  if (status.phase == idle) return;
  Member& member = members_.at(status.member);
  member.began = context.now;
  member.entering = status.phase == entering;
  member.waiting = status.phase == entering || status.phase == waiting;
  if (member.waiting) waiting_.push_back(status.member);
  if (status.phase == ended) ended_ = true;
  if (status.phase == going || status.phase == waiting) place(status.member, status.step);
}

void Coordinator::know_all(const Context& context) {
  knows_all_ = true;
  // A joining worker begins with the slowest. Under a barrier for which it matters, no worker, gone
  // or not, was let make more than the step after the slowest's; where all are gone, none was let
  // make more than the step after the highest that an owner holds.
  reviewed_ = workers_at_.empty() ? held_ : workers_at_.begin()->first;
  frontier_ = reviewed_ + 1;
  const Step first = lowest();
  for (const MemberId worker : alive_)
    if (members_[worker].entering) place(worker, first);
  const auto [min, max] = spread();
  spread_max_ = first_spread_ = max - min;
  std::erase_if(waiting_, [&](MemberId id) { return consider(context, id); });
}

// --- steps --------------------------------------------------------------------------------------

/// Returns the step at which a joining worker begins: `finished` where no worker runs and one has
/// ended; else one before `frontier_` in bulk-synchronous jobs; else the lowest step of the running
/// workers, or of the last that ran.
Step Coordinator::lowest() const {
  if (barrier::is_bsp(options_.barrier) && !(workers_at_.empty() && ended_)) return frontier_ - 1;
  if (!workers_at_.empty()) return workers_at_.begin()->first;
  return ended_ ? barrier::finished : reviewed_;
}

void Coordinator::on(const Context& context, const Stop&) {
  stopping_ = true;
  for (const MemberId id : std::exchange(waiting_, {})) answer(context, id);
}

void Coordinator::on_timer(const Context& context) {
  timer_.fired(context.now);
  std::vector<MemberId> due;
  for (const auto& [at, id] : retries_) {
    if (at > context.now) break;
    due.push_back(id);
  }
  for (const MemberId id : due)
    if (consider(context, id)) std::erase(waiting_, id);
  if (!retries_.empty()) timer_.want(context, retries_.begin()->first);
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
  // The first step is free, also for workers that start ahead.
  STARLING_CHECK(!bound || spread_max_ <= std::max(*bound, first_spread_ + 1));
}

/// Stops counting a worker's step and ends its wait; it may still be drawn unless it is dead.
void Coordinator::remove(MemberId id) {
  const auto place = workers_at_.find(members_[id].step);
  if (place != workers_at_.end() && --place->second == 0) workers_at_.erase(place);
  if (std::exchange(members_[id].waiting, false)) std::erase(waiting_, id);
  retry_at(id, Time::max());
}

Coordinator::Spread Coordinator::spread() const {
  if (workers_at_.empty()) return {};
  return {workers_at_.begin()->first, workers_at_.rbegin()->first};
}

/// `moved` has a new step, has finished or is gone: lets the waiting workers go on that now may.
void Coordinator::review(const Context& context, MemberId moved) {
  // Over everyone, a rule with a floor decides otherwise only when the slowest moves.
  const Step slowest = std::exchange(reviewed_, spread().min);
  const bool by_slowest =
      !options_.barrier.sample && barrier::floor(options_.barrier, 0).has_value();
  if (by_slowest && slowest == reviewed_) return;
  std::erase_if(waiting_, [&](MemberId id) {
    return id != moved && looks_again(members_[id], moved) && consider(context, id);
  });
}

bool Coordinator::looks_again(const Member& member, MemberId moved) const {
  if (!options_.barrier.sample || options_.recheck.arrival) return true;
  if (!options_.recheck.notify || member.laggard != moved) return false;
  const Member& other = members_[moved];
  return !other.alive || other.step >= barrier::floor(options_.barrier, member.step).value_or(0);
}

/// Lets `id` go on if it may, else sets when it draws again where its barrier samples. The caller
/// updates waiting_.
bool Coordinator::consider(const Context& context, MemberId id) {
  if (!knows_all_) return false;
  if (members_[id].entering || admitted(context, id)) {
    answer(context, id);
    return true;
  }
  if (!options_.barrier.sample) return false;
  Member& member = members_[id];
  const auto& interval = options_.recheck.interval;
  const bool someone_calls =
      options_.recheck.arrival || (options_.recheck.notify && member.laggard);
  if (!interval && someone_calls) return false;
  const bool automatic = !interval || *interval == barrier::Recheck::automatic;
  retry_at(id, context.now + (automatic ? member.step_times.recheck_interval() : *interval));
  timer_.want(context, member.retry);
  return false;
}

bool Coordinator::admitted(const Context& context, MemberId id) {
  if (barrier::always_passes(options_.barrier)) return true;
  const Step own = members_[id].step;
  const auto floor = barrier::floor(options_.barrier, own);
  if (floor == Step{0}) return true;
  if (options_.barrier.sample) return admitted_by_sample(context, id);
  if (floor) return spread().min >= *floor;
  seen_.clear();
  for (const MemberId other : alive_)
    if (other != id) seen_.push_back(members_[other].step);
  return barrier::admits(options_.barrier, own, seen_);
}

bool Coordinator::admitted_by_sample(const Context& context, MemberId id) {
  Member& member = members_[id];
  const auto others = static_cast<std::uint32_t>(alive_.size() - 1);
  const auto beta = static_cast<std::uint32_t>(barrier::observes(options_.barrier, others));
  if (beta == 0) return true;
  const auto floor = barrier::floor(options_.barrier, member.step);
  barrier::draw(others, beta, context.random, picks_);
  seen_.clear();
  member.drawn.clear();
  member.laggard.reset();
  for (const std::uint32_t pick : picks_) {
    const MemberId other = alive_[pick + (pick >= position_[id] ? 1 : 0)];
    member.drawn.push_back(other);
    seen_.push_back(members_[other].step);
    if (floor && !member.laggard && seen_.back() < *floor) member.laggard = other;
  }
  const bool pass = barrier::admits(options_.barrier, member.step, seen_);
  ++draws_;
  passes_ += pass ? 1 : 0;
  return pass;
}

/// Sets the time at which `id` draws again; Time::max() clears it.
void Coordinator::retry_at(MemberId id, Time at) {
  Member& member = members_[id];
  if (member.retry != Time::max()) retries_.erase({member.retry, id});
  member.retry = at;
  if (at != Time::max()) retries_.emplace(at, id);
}

/// Sends a waiting or entering worker Proceed, or Stop where the job stops.
void Coordinator::answer(const Context& context, MemberId id) {
  Member& member = members_[id];
  member.waiting = member.entering = false;
  member.began = context.now;
  member.stopped = stopping_;
  if (!stopping_) frontier_ = std::max(frontier_, member.step + 1);
  retry_at(id, Time::max());
  send_decision(context, id);
}

/// Sends a worker the decision made for it. A worker that was let go on before a stop is sent
/// Proceed again, or it would miss a round that the others make.
void Coordinator::send_decision(const Context& context, MemberId id) const {
  if (members_[id].stopped)
    context.send(ToWorker{id}, Stop{});
  else
    context.send(ToWorker{id}, Proceed{members_[id].step});
}

}  // namespace starling::core
