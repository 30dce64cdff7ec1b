#include "starling/engine/exchange/ownership/shard.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/ownership/shard_rounds.hpp"
#include "starling/engine/exchange/ownership/shard_updates.hpp"

namespace starling::core {
namespace {

constexpr std::uint32_t not_held = UINT32_MAX;  // in index_of_

LedgerEntry ledger_entry_of(const RangeState& state, MemberId worker) {
  return worker < state.ledger.size() ? state.ledger[worker] : LedgerEntry{};
}

template <class T>
std::shared_ptr<Buffer> zeros(std::size_t count) {
  auto buffer = Buffer::make<T>(count);
  std::ranges::fill(buffer->template as<T>(), T{0});
  return buffer;
}

}  // namespace

LedgerEntry first_ledger_entry(const std::vector<RangeState>& start, MemberId worker) {
  const auto least = std::ranges::min_element(
      start, {}, [&](const RangeState& state) { return ledger_entry_of(state, worker).step; });
  return least == start.end() ? LedgerEntry{} : ledger_entry_of(*least, worker);
}

template <class T>
Shard<T>::Shard(ShardOptions<T> options)
    : options_(std::move(options)),
      pending_snapshot_(options_.pending_snapshot),
      index_of_(options_.layout->ranges.size(), not_held) {
  if (options_.workers_max == 0) options_.workers_max = options_.workers;
  for (const RangeState& state : options_.ranges) put_range(state);
  options_.ranges.clear();
}

template <class T>
void Shard<T>::put_range(const RangeState& state) {
  const auto* gradients = std::get_if<GradientApplier>(&options_.applier);
  const std::size_t slots = gradients ? models::slots(gradients->optimizer) : 0;
  const std::size_t count = options_.layout->ranges.at(state.range).count;
  STARLING_CHECK(fits(state));
  HeldRange range{.value = Buffer::copy_of<T>(state.value.as<T>()),
                  .slots = state.slots.empty() ? zeros<T>(slots * count)
                                               : Buffer::copy_of<T>(state.slots.as<T>()),
                  .updates = state.updates,
                  .samples = state.samples,
                  .round = state.round,
                  .ledger = state.ledger,
                  .gathered = {},
                  .missing_pushes = 0,
                  .waiting_pulls = {}};
  range.ledger.resize(options_.workers_max);
  if (options_.bsp) {
    range.gathered.resize(options_.workers_max);
    for (const Push& push : state.gathered) range.gathered.at(push.worker).push_back(push);
    range.awaited.resize(options_.workers_max);
    if (state.awaited)
      for (const AwaitedWorker& awaited : *state.awaited)
        range.awaited.at(awaited.worker) = awaited;
    else
      for (MemberId worker = 0; worker < options_.workers; ++worker)
        range.awaited[worker] = AwaitedWorker{worker, range.ledger[worker].incarnation, 0};
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

template <class T>
void Shard<T>::release(RangeId range) {
  if (!holds(range)) return;
  const std::uint32_t index = index_of_[range];
  index_of_[ranges_.back()] = index;
  index_of_[range] = not_held;
  ranges_[index] = ranges_.back();
  held_[index] = std::move(held_.back());
  ranges_.pop_back();
  held_.pop_back();
}

template <class T>
typename Shard<T>::HeldRange& Shard<T>::held(RangeId range) {
  STARLING_CHECK(index_of_.at(range) != not_held);
  return held_[index_of_[range]];
}

template <class T>
bool Shard<T>::holds_rows(RangeId id, const Rows& rows) const {
  if (id >= index_of_.size() || index_of_[id] == not_held) return false;
  if (!rows || rows->empty()) return true;
  const Range& range = options_.layout->ranges[id];
  return range.row_size > 0 && std::ranges::max(*rows) < range.count / range.row_size;
}

template <class T>
bool Shard<T>::takes(const Pull& pull) const {
  return pull.worker < options_.workers_max && holds_rows(pull.range, pull.rows);
}

template <class T>
bool Shard<T>::takes(const Push& push) const {
  if (push.worker >= options_.workers_max || !holds_rows(push.range, nullptr)) return false;
  return push.update.empty() ||
         core::fits(options_.layout->ranges[push.range], push.update, sizeof(T));
}

template <class T>
bool Shard<T>::fits(const RangeState& state) const {
  const auto& ranges = options_.layout->ranges;
  if (state.range >= ranges.size() || state.value.rows || state.slots.rows ||
      !core::fits(ranges[state.range], state.value, sizeof(T)))
    return false;
  const auto* gradients = std::get_if<GradientApplier>(&options_.applier);
  const std::size_t slot_count = gradients ? models::slots(gradients->optimizer) : 0;
  const Range slots{0, slot_count * ranges[state.range].count, 0, {}};
  const auto is_worker = [&](const auto& entry) { return entry.worker < options_.workers_max; };
  return (state.slots.empty() || core::fits(slots, state.slots, sizeof(T))) &&
         state.ledger.size() <= options_.workers_max &&
         std::ranges::all_of(state.gathered,
                             [&](const Push& push) {
                               return is_worker(push) && push.range == state.range &&
                                      (push.update.empty() ||
                                       core::fits(ranges[state.range], push.update, sizeof(T)));
                             }) &&
         (!state.awaited || std::ranges::all_of(*state.awaited, is_worker));
}

template <class T>
void Shard<T>::on(const Context& context, const Pull& pull) {
  if (!takes(pull)) return;
  HeldRange& range = held(pull.range);
  if (!options_.bsp || range.round >= pull.at) return send_value(context, pull, range);
  std::erase_if(range.waiting_pulls, [&](const Pull& old) { return old.worker == pull.worker; });
  range.waiting_pulls.push_back(pull);
}

template <class T>
void Shard<T>::send_value(const Context& context, const Pull& pull, const HeldRange& range) const {
  context.send(ToWorker{pull.worker}, value_of(pull, range));
}

template <class T>
Value Shard<T>::value_of(const Pull& pull, const HeldRange& range) const {
  Slice slice{range.value, 0, range.value->size(), nullptr};
  const std::size_t row = options_.layout->ranges[pull.range].row_size;
  if (pull.rows && row > 0) {
    auto chosen = Buffer::make<T>(pull.rows->size() * row);
    auto to = chosen->template as<T>().begin();
    const auto from = std::as_const(*range.value).template as<T>();
    for (const std::uint32_t r : *pull.rows)
      to = std::ranges::copy(from.subspan(r * row, row), to).out;
    slice = {std::move(chosen), 0, pull.rows->size() * row, pull.rows};
  }
  return {pull.range, pull.at, std::move(slice)};
}

template <class T>
void Shard<T>::on(const Context& context, const Push& push) {
  if (accept(context, push) == PushResult::refused) return;
  context.send(ToWorker{push.worker},
               Ack{push.range, push.step, push.incarnation, push.owner_epoch});
}

template <class T>
PushResult Shard<T>::accept(const Context& context, const Push& push) {
  if (!takes(push)) return PushResult::refused;
  HeldRange& range = held(push.range);
  if (options_.bsp && push.is_join) return add_joiner(context, push, range);
  LedgerEntry& last = range.ledger.at(push.worker);
  if (push.incarnation < last.incarnation)
    return PushResult::refused;  // a later incarnation has replaced it
  if (push.incarnation > last.incarnation) {
    // A round has one push of each worker, so a new incarnation does not push to the rounds of a
    // former one again.
    if (options_.bsp)
      last.incarnation = push.incarnation;
    else
      last = {push.incarnation, 0, 0};
  }
  // Refuses a push to a round that was completed without it, because its worker counted as dead.
  if (options_.bsp && push.step > last.step && push.step <= range.round) return PushResult::refused;
  if (push.step <= last.step) return PushResult::duplicate;
  last.step = push.step;
  process(context, push, range);
  return PushResult::accepted;
}

template <class T>
void Shard<T>::process(const Context& context, const Push& push, HeldRange& range) {
  if (options_.bsp) return queue_push(context, push, range);
  double weight = 1;
  if (const auto* gradients = std::get_if<GradientApplier>(&options_.applier))
    weight = static_cast<double>(push.samples) /
             static_cast<double>(options_.workers * gradients->batch);
  // A push of 0 samples has no gradient, so the optimiser must not decay its momentum either.
  if (!push.update.empty() && weight > 0) {
    ++range.updates;
    apply(push.range, range, push.update, weight);
  }
  count_samples(push, range);
}

/// Counts the samples of the worker since its last push to this range.
template <class T>
void Shard<T>::count_samples(const Push& push, HeldRange& range) {
  std::uint64_t& counted = range.ledger[push.worker].samples;
  range.samples += options_.bsp ? push.samples : push.samples_total - counted;
  counted = push.samples_total;
}

template <class T>
void Shard<T>::on(const Context& context, const Snapshot& request) {
  if (request.round > 0) {
    if (!options_.bsp) return;  // the job has no rounds
    pending_snapshot_ = request;
  }
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Step round = held_[i].round;
    if (request.round == 0 || round == request.round)
      context.send(ToObserver{}, make_state(ranges_[i], held_[i], request.request_id));
    else if (round > request.round)
      context.send(ToObserver{}, RangeState{.range = ranges_[i],
                                            .value = {},
                                            .slots = {},
                                            .round = round,
                                            .ledger = {},
                                            .request_id = request.request_id});
  }
}

template <class T>
RangeState Shard<T>::make_state(RangeId id, const HeldRange& range,
                                std::uint64_t request_id) const {
  auto ledger = range.ledger;
  if (options_.bsp)  // pushes that wait for their round are not in the value yet
    for (LedgerEntry& entry : ledger) entry.step = std::min(entry.step, range.round);
  return {.range = id,
          .value = {range.value, 0, range.value->size(), nullptr},
          .slots = {range.slots, 0, range.slots->size(), nullptr},
          .updates = range.updates,
          .samples = range.samples,
          .round = range.round,
          .ledger = std::move(ledger),
          .request_id = request_id};
}

template <class T>
Step Shard<T>::highest_step() const {
  Step highest = 0;
  for (const HeldRange& range : held_)
    for (const LedgerEntry& entry : range.ledger) highest = std::max(highest, entry.step);
  return highest;
}

template <class T>
RangeState Shard<T>::full_state(RangeId id) const {
  STARLING_CHECK(holds(id));
  const HeldRange& range = held_[index_of_[id]];
  RangeState copy = make_state(id, range, 0);
  copy.ledger = range.ledger;  // make_state() leaves out the steps whose pushes wait
  for (const auto& queue : range.gathered)
    copy.gathered.insert(copy.gathered.end(), queue.begin(), queue.end());
  if (options_.bsp) {
    copy.awaited.emplace();
    for (const auto& awaited : range.awaited)
      if (awaited) copy.awaited->push_back(*awaited);
  }
  return copy;
}

template class Shard<float>;
template class Shard<double>;

}  // namespace starling::core
