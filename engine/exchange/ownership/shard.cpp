#include "starling/engine/exchange/ownership/shard.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "starling/base/check.hpp"

namespace starling::core {
namespace {

constexpr std::uint32_t not_held = UINT32_MAX;  // in index_of_

}  // namespace

Shard::Shard(ExchangeOptions options)
    : options_(std::move(options)),
      pending_snapshot_(options_.pending_snapshot),
      index_of_(options_.layout->ranges.size(), not_held) {
  if (options_.workers_max == 0) options_.workers_max = options_.workers;
}

void Shard::put_range(const OwnerState& owned) {
  STARLING_CHECK(fits(owned));
  const RangeState& state = owned.state;
  HeldRange range{.values = values_of(*options_.layout, *options_.applier, state),
                  .round = state.round,
                  .ledger = state.ledger,
                  .queued_pushes = {},
                  .missing_pushes = 0,
                  .waiting_pulls = {}};
  range.ledger.resize(options_.workers_max);
  if (options_.bsp) {
    range.queued_pushes.resize(options_.workers_max);
    for (const Push& push : owned.queued_pushes)
      range.queued_pushes.at(push.worker).push_back(push);
    range.awaited.resize(options_.workers_max);
    if (owned.awaited)
      for (const AwaitedWorker& awaited : *owned.awaited)
        range.awaited.at(awaited.worker) = awaited;
    else
      for (MemberId worker = 0; worker < options_.workers; ++worker)
        range.awaited[worker] = AwaitedWorker{
            .worker = worker, .incarnation = range.ledger[worker].incarnation, .after_round = 0};
    range.missing_pushes = count_missing(range);
  }
  if (holds(state.range)) {
    held_[index_of_[state.range]] = std::move(range);
    return;
  }
  index_of_[state.range] = static_cast<std::uint32_t>(held_.size());
  ranges_.push_back(state.range);
  held_.push_back(std::move(range));
}

void Shard::release(RangeId range) {
  if (!holds(range)) return;
  const std::uint32_t index = index_of_[range];
  index_of_[ranges_.back()] = index;
  index_of_[range] = not_held;
  ranges_[index] = ranges_.back();
  held_[index] = std::move(held_.back());
  ranges_.pop_back();
  held_.pop_back();
}

Shard::HeldRange& Shard::held(RangeId range) {
  STARLING_CHECK(index_of_.at(range) != not_held);
  return held_[index_of_[range]];
}

bool Shard::holds_rows(RangeId id, const Rows& rows) const {
  return holds(id) && has_rows(options_.layout->ranges[id], rows);
}

bool Shard::is_valid(const Pull& pull) const {
  return pull.worker < options_.workers_max && holds_rows(pull.range, pull.rows);
}

bool Shard::is_valid(const Push& push) const {
  if (push.worker >= options_.workers_max || !holds_rows(push.range, nullptr)) return false;
  return push.update.empty() || core::fits(options_.layout->ranges[push.range], push.update,
                                           options_.applier->element_bytes());
}

bool Shard::fits(const OwnerState& owned) const {
  const RangeState& state = owned.state;
  if (!core::fits(*options_.layout, *options_.applier, state)) return false;
  const std::size_t width = options_.applier->element_bytes();
  const Range& range = options_.layout->ranges[state.range];
  const auto is_worker = [&](const auto& entry) { return entry.worker < options_.workers_max; };
  const auto is_valid_push = [&](const Push& push) {
    return is_worker(push) && push.range == state.range &&
           (push.update.empty() || core::fits(range, push.update, width));
  };
  return state.ledger.size() <= options_.workers_max &&
         std::ranges::all_of(owned.queued_pushes, is_valid_push) &&
         (!owned.awaited || std::ranges::all_of(*owned.awaited, is_worker));
}

void Shard::on(const OwnershipContext& context, const Pull& pull) {
  if (!is_valid(pull)) return;
  HeldRange& range = held(pull.range);
  if (!options_.bsp || range.round >= pull.after_step) return send_value(context, pull, range);
  std::erase_if(range.waiting_pulls, [&](const Pull& old) { return old.worker == pull.worker; });
  range.waiting_pulls.push_back(pull);
}

void Shard::send_value(const OwnershipContext& context, const Pull& pull,
                       const HeldRange& range) const {
  context.send(pull.worker, value_of(pull, range));
}

Value Shard::value_of(const Pull& pull, const HeldRange& range) const {
  return {pull.range, pull.after_step,
          slice_of(options_.layout->ranges[pull.range], range.values, pull.rows),
          range.values.samples};
}

PushResult Shard::accept(const OwnershipContext& context, const Push& push, std::size_t workers) {
  if (!is_valid(push)) return PushResult::refused;
  HeldRange& range = held(push.range);
  if (options_.bsp && push.is_join) return add_joiner(context, push, range);
  LedgerEntry& last = range.ledger.at(push.worker);
  if (push.incarnation < last.incarnation)
    return PushResult::refused;  // a later incarnation has replaced it
  if (push.incarnation > last.incarnation) {
    // Under bsp, keeps the last step: its round has a push of the former incarnation, and must not
    // get a second one of the same worker.
    if (options_.bsp)
      last.incarnation = push.incarnation;
    else
      last = {push.incarnation, 0, 0};
  }
  // The round of this push was completed without it, because its worker counted as dead.
  if (options_.bsp && push.step > last.step && push.step <= range.round) return PushResult::refused;
  if (push.step <= last.step) return PushResult::duplicate;
  last.step = push.step;
  apply_or_queue(context, push, range, workers);
  return PushResult::accepted;
}

void Shard::apply_or_queue(const OwnershipContext& context, const Push& push, HeldRange& range,
                           std::size_t workers) {
  if (options_.bsp) return queue_push(context, push, range);
  if (!push.update.empty())
    options_.applier->apply(*options_.layout, push.range, range.values, push.update,
                            options_.applier->weight(push.samples, workers));
  count_samples(push, range);
}

/// Counts the samples of an update that the range contains now. Under bsp each round has a push of
/// each worker, so the samples are those of the push. Under other barriers a push stands for all
/// steps since the worker's last push to this range: a worker pushes nothing to a range that its
/// step has not changed.
void Shard::count_samples(const Push& push, HeldRange& range) {
  LedgerEntry& entry = range.ledger[push.worker];
  range.values.samples += options_.bsp ? push.samples : push.samples_total - entry.samples;
  // A later incarnation may have entered while the push waited for its round.
  if (push.incarnation == entry.incarnation) entry.samples = push.samples_total;
}

void Shard::on(const OwnershipContext& context, const Snapshot& request) {
  if (request.round > 0) {
    if (!options_.bsp) return;  // the job has no rounds
    pending_snapshot_ = request;
  }
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Step round = held_[i].round;
    if (request.round == 0 || round == request.round)
      context.send_to_observer(make_state(ranges_[i], held_[i], request.request_id));
    else if (round > request.round)
      // The state after the requested round is gone. An empty state with the later round tells the
      // observer to request a round that is still to come.
      context.send_to_observer({.range = ranges_[i],
                                .value = {},
                                .slots = {},
                                .round = round,
                                .ledger = {},
                                .request_id = request.request_id});
  }
}

RangeState Shard::make_state(RangeId id, const HeldRange& range, std::uint64_t request_id) const {
  const RangeValues& values = range.values;
  auto ledger = range.ledger;
  if (options_.bsp)  // a queued push is of a later step than range.round, and not in the value yet
    for (LedgerEntry& entry : ledger) entry.step = std::min(entry.step, range.round);
  return {.range = id,
          .value = {values.value, 0, values.value->size(), nullptr},
          .slots = {values.slots, 0, values.slots->size(), nullptr},
          .updates = values.updates,
          .samples = values.samples,
          .round = range.round,
          .ledger = std::move(ledger),
          .request_id = request_id};
}

std::vector<WorkerProgress> Shard::progress() const {
  std::vector<WorkerProgress> all;
  for (MemberId worker = 0; worker < options_.workers_max; ++worker) {
    WorkerProgress highest{.worker = {worker, 0}};
    for (const HeldRange& range : held_) {
      const LedgerEntry& entry = range.ledger[worker];
      WorkerProgress here{{worker, entry.incarnation}, entry.step, entry.samples};
      // The ledger does not count the samples of queued pushes yet.
      if (options_.bsp)
        for (const Push& push : range.queued_pushes[worker])
          if (push.incarnation == entry.incarnation) here.samples = push.samples_total;
      const auto order_key = [](const WorkerProgress& p) {
        return std::tuple{p.worker.incarnation, p.step, p.samples};
      };
      if (order_key(here) > order_key(highest)) highest = here;
    }
    if (highest.step > 0) all.push_back(highest);
  }
  return all;
}

OwnerState Shard::full_state(RangeId id) const {
  STARLING_CHECK(holds(id));
  const HeldRange& range = held_[index_of_[id]];
  OwnerState copy{make_state(id, range, 0)};
  copy.state.ledger = range.ledger;  // make_state() leaves out the steps whose pushes wait
  for (const auto& queue : range.queued_pushes)
    copy.queued_pushes.insert(copy.queued_pushes.end(), queue.begin(), queue.end());
  if (options_.bsp) {
    copy.awaited.emplace();
    for (const auto& awaited : range.awaited)
      if (awaited) copy.awaited->push_back(*awaited);
  }
  return copy;
}

}  // namespace starling::core
