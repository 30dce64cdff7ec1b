#include "starling/engine/core/coordinator.hpp"

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
    // Said before. Who does not wait was answered, and may have lost the answer with its actor.
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
  // Only when all have gone and come is anyone let go: what is drawn is drawn from the new members.
  std::vector<MemberId> gone;
  for (const MemberId id : left) {
    unheard_.erase(id);
    if (dismiss(id)) gone.push_back(id);
  }
  for (const MemberId worker : joined) on_joined(worker);
  for (const MemberId worker : gone) review(context, worker);
  if (!knows_all_ && unheard_.empty()) know_all(context);
}

/// Forgets a worker; false where there is none, or that was done before.
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

/// A worker that stands nowhere yet.
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

/// Requires: it stands nowhere yet.
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

/// What one says who was awaited.
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
  // Who joins begins with the slowest. Nobody was ever let make more than its next step, not even
  // of those who are gone, under a barrier for which that matters; nor more than the next of what
  // is held, where they all are.
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

/// Of those that run; where none does, of the last that did.
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
  // The first step is free, also for those who are ahead.
  STARLING_CHECK(!bound || spread_max_ <= std::max(*bound, first_spread_ + 1));
}

/// Takes a worker out of the race; it may still be drawn unless it is dead.
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

/// `moved` has a new step, has finished or is gone: who waits for that?
void Coordinator::review(const Context& context, MemberId moved) {
  // Over everyone, a rule with a floor can only change its mind when the slowest moves.
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

/// Lets `id` go if it may, or says when it looks again. The caller keeps waiting_.
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

/// Sets or, by Time::max(), clears when `id` draws again by the clock.
void Coordinator::retry_at(MemberId id, Time at) {
  Member& member = members_[id];
  if (member.retry != Time::max()) retries_.erase({member.retry, id});
  member.retry = at;
  if (at != Time::max()) retries_.emplace(at, id);
}

/// Tells a worker at the barrier to go on, or to stop where the job does.
void Coordinator::answer(const Context& context, MemberId id) {
  Member& member = members_[id];
  member.waiting = member.entering = false;
  member.began = context.now;
  member.stopped = stopping_;
  if (!stopping_) frontier_ = std::max(frontier_, member.step + 1);
  retry_at(id, Time::max());
  send_decision(context, id);
}

/// Says what was decided for a worker. Who was let go before a stop stays so, or it would miss a
/// round that the others make.
void Coordinator::send_decision(const Context& context, MemberId id) const {
  if (members_[id].stopped)
    context.send(ToWorker{id}, Stop{});
  else
    context.send(ToWorker{id}, Proceed{members_[id].step});
}

}  // namespace starling::core
