#include "starling/engine/core/worker/worker.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

/// The owner of a part that was not sent to its present owner.
constexpr OwnerId not_sent = UINT32_MAX;
/// The position of a range that is not in the plan.
constexpr std::uint32_t not_planned = UINT32_MAX;

/// Returns every range, whole.
std::vector<RangeRows> all_ranges(std::size_t count) {
  std::vector<RangeRows> ranges(count);
  for (std::size_t i = 0; i < count; ++i) ranges[i].range = static_cast<RangeId>(i);
  return ranges;
}

std::vector<OwnerId> distinct(std::vector<OwnerId> owners) {
  std::ranges::sort(owners);
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

}  // namespace

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      owners_(distinct(*options_.owner_of)),
      step_(options_.first_step),
      samples_(options_.samples),
      position_(options_.owner_of->size(), not_planned) {
  if (!options_.central)
    gate_.emplace(options_.barrier, options_.recheck, options_.id, options_.workers);
}

void Worker::start(const Context& context) {
  STARLING_CHECK(phase_ == Phase::idle);
  if (options_.joins) return enter(context);
  if (stopping_ || step_ >= options_.last_step) return finish(context);
  begin_step(context);
}

/// Asks others at which step to begin, or waits for the coordinator's Proceed.
void Worker::enter(const Context& context) {
  phase_ = Phase::entering;
  if (gate_ && gate_->enter(context)) begin_at(context, gate_->entry_step());
}

void Worker::begin_at(const Context& context, Step first) {
  step_ = std::min(first, options_.last_step);
  if (options_.bsp && step_ < options_.last_step) return push_entry(context);
  notify_waiters(context);
  if (stopping_ || step_ >= options_.last_step) return finish(context);
  begin_step(context);
}

/// In bulk-synchronous jobs a joining worker first pushes its entry to every range: a push without
/// an update (Push::is_join), which counts as a step. All later rounds of the range await its
/// pushes.
void Worker::push_entry(const Context& context) {
  is_entry_ = true;
  step_started_at_ = context.now;
  update_ = {};
  for (RangeId range = 0; range < position_.size(); ++range) update_.parts.push_back({range, {}});
  unacknowledged_.assign(update_.parts.size(), true);
  unanswered_ = update_.parts.size();
  push(context);
}

void Worker::begin_step(const Context& context) {
  step_started_at_ = context.now;
  failures_ = 0;
  if (options_.asks_for_plan) {
    phase_ = Phase::planning;
    context.out.push_back(Plan{step_});
    return;
  }
  if (plan_.empty()) {
    plan_ = all_ranges(position_.size());
    for (std::uint32_t i = 0; i < plan_.size(); ++i) position_[i] = i;
  }
  pull(context);
}

void Worker::on_plan(const Context& context, Step step, std::vector<RangeRows> wanted) {
  if (phase_ != Phase::planning || step != step_) return;
  for (const RangeRows& old : plan_) position_[old.range] = not_planned;
  plan_ = std::move(wanted);
  for (std::uint32_t i = 0; i < plan_.size(); ++i) {
    std::uint32_t& position = position_.at(plan_[i].range);
    STARLING_CHECK(position == not_planned);
    position = i;
  }
  pull(context);
}

void Worker::pull(const Context& context) {
  phase_ = Phase::pulling;
  values_.assign(plan_.size(), Value{});
  unanswered_ = plan_.size();
  send_all(context);
  if (unanswered_ == 0) {
    phase_ = Phase::computing;
    context.out.push_back(Compute{step_, {}});
  }
}

Epoch Worker::owner_epoch(RangeId range) const {
  return options_.owner_epochs ? (*options_.owner_epochs)[range] : 0;
}

RangeId Worker::range_of(std::uint32_t part) const {
  return phase_ == Phase::pulling ? plan_[part].range : update_.parts[part].range;
}

bool Worker::is_answered(std::uint32_t part) const {
  return phase_ == Phase::pulling ? values_[part].value.buffer != nullptr : !unacknowledged_[part];
}

/// Pulls or pushes all parts; queues those for which the owner's window is full.
void Worker::send_all(const Context& context) {
  sent_to_.assign(phase_ == Phase::pulling ? plan_.size() : update_.parts.size(), not_sent);
  send_unsent(context);
}

/// Sends or queues the parts that are neither answered nor in flight.
void Worker::send_unsent(const Context& context) {
  windows_.resize(owners_.size());
  for (OwnerWindow& window : windows_) {
    window.in_flight = 0;
    window.queued.clear();
  }
  for (std::uint32_t part = 0; part < sent_to_.size(); ++part)
    if (!is_answered(part) && sent_to_[part] != not_sent) ++window_of(sent_to_[part]).in_flight;
  for (std::uint32_t part = 0; part < sent_to_.size(); ++part)
    if (!is_answered(part) && sent_to_[part] == not_sent) send_or_queue(context, part);
  for (OwnerWindow& window : windows_) std::ranges::reverse(window.queued);
}

Worker::OwnerWindow& Worker::window_of(OwnerId owner) {
  const auto at = std::ranges::lower_bound(owners_, owner);
  STARLING_CHECK(at != owners_.end() && *at == owner);
  return windows_[static_cast<std::size_t>(at - owners_.begin())];
}

void Worker::send_or_queue(const Context& context, std::uint32_t part) {
  OwnerWindow& window = window_of((*options_.owner_of)[range_of(part)]);
  if (window.in_flight < options_.window)
    send_part(context, part);
  else
    window.queued.push_back(part);
}

void Worker::send_part(const Context& context, std::uint32_t part) {
  const RangeId range = range_of(part);
  const OwnerId owner = (*options_.owner_of)[range];
  ++window_of(owner).in_flight;
  sent_to_[part] = owner;
  if (phase_ == Phase::pulling)
    context.send(ToOwner{owner}, Pull{options_.id, range, step_, plan_[part].rows});
  else
    context.send(ToOwner{owner}, Push{options_.id, options_.incarnation, range, step_ + 1,
                                      update_.samples, samples_ + update_.samples,
                                      update_.parts[part].values, is_entry_, owner_epoch(range)});
}

/// `part` was answered: sends the next part that is queued for the same owner.
void Worker::send_next(const Context& context, std::uint32_t part) {
  if (sent_to_[part] == not_sent) return;  // a former owner has answered
  OwnerWindow& window = window_of(sent_to_[part]);
  --window.in_flight;
  while (!window.queued.empty()) {
    const std::uint32_t next = window.queued.back();
    window.queued.pop_back();
    if (!is_answered(next)) return send_part(context, next);
  }
}

void Worker::on(const Context& context, const Value& value) {
  if (phase_ != Phase::pulling || value.at != step_) return;
  const std::uint32_t part = position_.at(value.range);
  if (part == not_planned || values_[part].value.buffer) return;
  values_[part] = value;
  if (--unanswered_ > 0) return send_next(context, part);
  phase_ = Phase::computing;
  context.out.push_back(Compute{step_, values_});
}

void Worker::on_update(const Context& context, Step step, Update update) {
  if (phase_ != Phase::computing || step != step_) return;
  values_.clear();  // releases the buffers, so that an owner need not copy a range to change it
  update_ = std::move(update);
  if (options_.bsp) {
    std::vector<bool> covered(position_.size());
    for (const auto& part : update_.parts) covered[part.range] = true;
    for (RangeId range = 0; range < covered.size(); ++range)
      if (!covered[range]) update_.parts.push_back({range, {}});
  }
  std::ranges::sort(update_.parts, {}, &Update::Part::range);
  STARLING_CHECK(std::ranges::adjacent_find(update_.parts, {}, &Update::Part::range) ==
                 update_.parts.end());
  unacknowledged_.assign(update_.parts.size(), true);
  unanswered_ = update_.parts.size();
  push(context);
}

void Worker::on_failure(const Context& context, Step step, const std::string& why) {
  const bool planning = phase_ == Phase::planning;
  if ((!planning && phase_ != Phase::computing) || step != step_) return;
  if (++failures_ < options_.attempts) {
    if (planning)
      context.out.push_back(Plan{step_});
    else
      context.out.push_back(Compute{step_, values_});
    return;
  }
  phase_ = Phase::failed;
  context.out.push_back(Fail{"worker " + std::to_string(options_.id) + " failed " +
                             std::to_string(failures_) + " times at step " +
                             std::to_string(step_ + 1) + ": " + why});
}

void Worker::push(const Context& context) {
  phase_ = Phase::pushing;
  send_all(context);
  if (unanswered_ == 0) finish_step(context);
}

void Worker::on(const Context& context, const Ack& ack) {
  if (phase_ != Phase::pushing || ack.step != step_ + 1) return;
  if (ack.incarnation != options_.incarnation || ack.owner_epoch != owner_epoch(ack.range)) return;
  const auto part = std::ranges::lower_bound(update_.parts, ack.range, {}, &Update::Part::range);
  if (part == update_.parts.end() || part->range != ack.range) return;
  const auto position = static_cast<std::size_t>(part - update_.parts.begin());
  if (!unacknowledged_[position]) return;
  unacknowledged_[position] = false;
  if (--unanswered_ > 0) return send_next(context, static_cast<std::uint32_t>(position));
  finish_step(context);
}

void Worker::finish_step(const Context& context) {
  ++step_;
  samples_ += update_.samples;
  update_ = {};
  if (!std::exchange(is_entry_, false)) step_times_.add(context.now - step_started_at_);
  notify_waiters(context);
  if (stopping_ || step_ >= options_.last_step) return finish(context);
  wait_started_at_ = context.now;
  phase_ = Phase::waiting;
  ask_to_pass_barrier(context);
}

void Worker::finish(const Context& context) {
  if (phase_ == Phase::waiting) waited_ += context.now - wait_started_at_;
  phase_ = Phase::done;
  if (gate_) gate_->stop_asking();
  send_ended(context);
  notify_waiters(context);
}

void Worker::send_ended_to_owners(const Context& context) const {
  for (const OwnerId owner : owners_) context.send(ToOwner{owner}, Ended{options_.id, step_});
}

void Worker::send_ended(const Context& context) const {
  send_ended_to_owners(context);
  if (!gate_) context.send(ToCoordinator{}, Ended{options_.id, step_});
  context.out.push_back(Done{step_});
}

void Worker::on(const Context& context, const Stop&) {
  stopping_ = true;
  if (phase_ == Phase::waiting || phase_ == Phase::entering) finish(context);
}

void Worker::on_configuration(const Context& context, WorkerConfiguration next) {
  const auto old_owner_epochs = std::exchange(options_.owner_epochs, std::move(next.owner_epochs));
  options_.owner_of = std::move(next.owner_of);
  owners_ = distinct(*options_.owner_of);
  if (phase_ == Phase::pulling || phase_ == Phase::pushing) {
    // Sends a part again only if its range has a new owner epoch, with which owners change.
    for (std::uint32_t part = 0; part < sent_to_.size(); ++part) {
      const RangeId range = range_of(part);
      if (!old_owner_epochs || (*old_owner_epochs)[range] != owner_epoch(range) ||
          sent_to_[part] != (*options_.owner_of)[range])
        sent_to_[part] = not_sent;
    }
    send_unsent(context);
  } else if (phase_ == Phase::done && options_.bsp) {
    send_ended_to_owners(context);
  }
  for (const MemberId id : next.changed) notify_requests_.erase(id);
  options_.workers = next.workers;
  if (gate_ && gate_->on_members(context, std::move(next.workers), next.changed)) go_on(context);
}

}  // namespace starling::core
