#include "starling/engine/exchange/ownership/shard.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "starling/base/check.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::core {
namespace {

constexpr std::uint32_t nowhere = UINT32_MAX;

LedgerEntry entry_of(const RangeState& state, MemberId worker) {
  return worker < state.ledger.size() ? state.ledger[worker] : LedgerEntry{};
}

/// True where no reader holds the buffer any more, so that it may be changed in place.
bool sole_owner(const std::shared_ptr<Buffer>& buffer) {
#ifdef __SANITIZE_THREAD__
  (void)buffer;  // ThreadSanitizer does not model the fence below, so it sees copies only.
  return false;
#else
  if (buffer.use_count() != 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last reader's release
  return true;
#endif
}

/// Replaces `buffer` by a copy where readers still hold it.
template <class T>
void make_writable(std::shared_ptr<Buffer>& buffer) {
  if (sole_owner(buffer)) return;
  buffer = Buffer::copy_of<T>(std::as_const(*buffer).as<T>());
}

template <class T>
std::shared_ptr<Buffer> zeros(std::size_t count) {
  auto buffer = Buffer::make<T>(count);
  std::ranges::fill(buffer->template as<T>(), T{0});
  return buffer;
}

/// Calls piece(first element, values) for the runs of consecutive elements of a range in `slice`.
template <class T, class Piece>
void for_each_piece(const Range& range, const Slice& slice, Piece piece) {
  const auto values = slice.as<T>();
  if (slice.empty()) return;
  if (!slice.rows) return piece(std::size_t{0}, values);
  const auto& rows = *slice.rows;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    piece(rows[i] * range.row_size, values.subspan(i * range.row_size, (end - i) * range.row_size));
    i = end;
  }
}

}  // namespace

LedgerEntry first_entry(const std::vector<RangeState>& start, MemberId worker) {
  const auto least = std::ranges::min_element(
      start, {}, [&](const RangeState& state) { return entry_of(state, worker).step; });
  return least == start.end() ? LedgerEntry{} : entry_of(*least, worker);
}

template <class T>
Shard<T>::Shard(ShardOptions<T> options)
    : options_(std::move(options)),
      due_(options_.due),
      position_(options_.layout->ranges.size(), nowhere) {
  if (options_.workers_max == 0) options_.workers_max = options_.workers;
  for (const RangeState& state : options_.ranges) take_in(state);
  options_.ranges.clear();
}

template <class T>
void Shard<T>::take_in(const RangeState& state) {
  const auto* descend = std::get_if<GradientApplier>(&options_.applier);
  const std::size_t slots = descend ? models::slots(descend->optimizer) : 0;
  const std::size_t count = options_.layout->ranges.at(state.range).count;
  STARLING_CHECK(fits(state));
  Held held{.value = Buffer::copy_of<T>(state.value.as<T>()),
            .slots = state.slots.empty() ? zeros<T>(slots * count)
                                         : Buffer::copy_of<T>(state.slots.as<T>()),
            .updates = state.updates,
            .samples = state.samples,
            .round = state.round,
            .ledger = state.ledger,
            .gathered = {},
            .missing = 0,
            .parked = {}};
  held.ledger.resize(options_.workers_max);
  if (options_.bsp) {
    held.gathered.resize(options_.workers_max);
    for (const Push& push : state.gathered) held.gathered.at(push.worker).push_back(push);
    held.awaited.resize(options_.workers_max);
    if (state.awaited)
      for (const Awaited& awaited : *state.awaited) held.awaited.at(awaited.worker) = awaited;
    else
      for (MemberId worker = 0; worker < options_.workers; ++worker)
        held.awaited[worker] = Awaited{worker, held.ledger[worker].incarnation, 0};
    held.missing = count_missing(held);
  }
  if (holds(state.range)) {
    held_[position_[state.range]] = std::move(held);
    return;
  }
  position_[state.range] = static_cast<std::uint32_t>(held_.size());
  ranges_.push_back(state.range);
  held_.push_back(std::move(held));
}

template <class T>
void Shard<T>::release(RangeId range) {
  if (!holds(range)) return;
  const std::uint32_t at = position_[range];
  position_[ranges_.back()] = at;
  position_[range] = nowhere;
  ranges_[at] = ranges_.back();
  held_[at] = std::move(held_.back());
  ranges_.pop_back();
  held_.pop_back();
}

template <class T>
typename Shard<T>::Held& Shard<T>::held(RangeId range) {
  STARLING_CHECK(position_.at(range) != nowhere);
  return held_[position_[range]];
}

template <class T>
bool Shard<T>::has(RangeId id, const Rows& rows) const {
  if (id >= position_.size() || position_[id] == nowhere) return false;
  if (!rows || rows->empty()) return true;
  const Range& range = options_.layout->ranges[id];
  return range.row_size > 0 && std::ranges::max(*rows) < range.count / range.row_size;
}

template <class T>
bool Shard<T>::takes(const Pull& pull) const {
  return pull.worker < options_.workers_max && has(pull.range, pull.rows);
}

template <class T>
bool Shard<T>::takes(const Push& push) const {
  if (push.worker >= options_.workers_max || !has(push.range, nullptr)) return false;
  return push.update.empty() ||
         core::fits(options_.layout->ranges[push.range], push.update, sizeof(T));
}

template <class T>
bool Shard<T>::fits(const RangeState& state) const {
  const auto& ranges = options_.layout->ranges;
  if (state.range >= ranges.size() || state.value.rows || state.slots.rows ||
      !core::fits(ranges[state.range], state.value, sizeof(T)))
    return false;
  const auto* descend = std::get_if<GradientApplier>(&options_.applier);
  const std::size_t slot_count = descend ? models::slots(descend->optimizer) : 0;
  const Range slots{0, slot_count * ranges[state.range].count, 0, {}};
  const auto is_worker = [&](const auto& of) { return of.worker < options_.workers_max; };
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
  Held& range = held(pull.range);
  if (!options_.bsp || range.round >= pull.at) return answer(context, pull, range);
  std::erase_if(range.parked, [&](const Pull& old) { return old.worker == pull.worker; });
  range.parked.push_back(pull);
}

template <class T>
void Shard<T>::answer(const Context& context, const Pull& pull, const Held& range) const {
  context.send(ToWorker{pull.worker}, value_of(pull, range));
}

template <class T>
Value Shard<T>::value_of(const Pull& pull, const Held& range) const {
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
  if (take(context, push) == PushResult::refused) return;
  context.send(ToWorker{push.worker}, Ack{push.range, push.step, push.incarnation, push.view});
}

template <class T>
PushResult Shard<T>::take(const Context& context, const Push& push) {
  if (!takes(push)) return PushResult::refused;
  Held& range = held(push.range);
  if (options_.bsp && push.enters) return enter(context, push, range);
  LedgerEntry& last = range.ledger.at(push.worker);
  if (push.incarnation < last.incarnation)
    return PushResult::refused;  // that incarnation was replaced
  if (push.incarnation > last.incarnation) {
    // All workers share a round: a push of a former incarnation to it is not repeated by a new one.
    if (options_.bsp)
      last.incarnation = push.incarnation;
    else
      last = {push.incarnation, 0, 0};
  }
  // The round was completed without this push, as happens where its worker was declared dead: no
  // answer either.
  if (options_.bsp && push.step > last.step && push.step <= range.round) return PushResult::refused;
  if (push.step <= last.step) return PushResult::known;
  last.step = push.step;
  accept(context, push, range);
  return PushResult::taken;
}

template <class T>
void Shard<T>::accept(const Context& context, const Push& push, Held& range) {
  if (options_.bsp) return gather(context, push, range);
  double weight = 1;
  if (const auto* descend = std::get_if<GradientApplier>(&options_.applier))
    weight =
        static_cast<double>(push.samples) / static_cast<double>(options_.workers * descend->batch);
  // A push over no samples has no gradient: it must not even age momentum.
  if (!push.update.empty() && weight > 0) {
    ++range.updates;
    apply(push.range, range, push.update, weight);
  }
  count(push, range);
}

/// Counts the samples seen since the worker's last push here.
template <class T>
void Shard<T>::count(const Push& push, Held& range) {
  std::uint64_t& counted = range.ledger[push.worker].samples;
  range.samples += options_.bsp ? push.samples : push.samples_sum - counted;
  counted = push.samples_sum;
}

template <class T>
void Shard<T>::gather(const Context& context, const Push& push, Held& range) {
  auto& queue = range.gathered[push.worker];
  if (queue.empty() && takes_part(range, push.worker)) --range.missing;
  queue.push_back(push);
  complete_rounds(context, push.range, range);
}

/// True where the next round needs a push of `worker`.
template <class T>
bool Shard<T>::takes_part(const Held& range, MemberId worker) {
  return range.awaited[worker] && range.awaited[worker]->from <= range.round;
}

template <class T>
std::size_t Shard<T>::count_missing(const Held& range) {
  std::size_t missing = 0;
  for (MemberId worker = 0; worker < range.awaited.size(); ++worker)
    missing += takes_part(range, worker) && range.gathered[worker].empty() ? 1 : 0;
  return missing;
}

template <class T>
void Shard<T>::complete_rounds(const Context& context, RangeId id, Held& range) {
  const auto is_filled = [](const auto& queue) { return !queue.empty(); };
  // Where all workers of a round are gone, workers that joined for a later round still need it to
  // end.
  const auto is_behind = [&](const auto& awaited) {
    return awaited && awaited->from > range.round;
  };
  while (range.missing == 0 && (std::ranges::any_of(range.gathered, is_filled) ||
                                std::ranges::any_of(range.awaited, is_behind))) {
    apply_round(id, range);
    range.missing = count_missing(range);
    for (const Pull& pull : range.parked)
      if (range.round >= pull.at) answer(context, pull, range);
    std::erase_if(range.parked, [&](const Pull& pull) { return range.round >= pull.at; });
    if (range.round == due_.round) context.send(ToObserver{}, state(id, range, due_.ticket));
  }
}

template <class T>
void Shard<T>::apply_round(RangeId id, Held& range) {
  std::vector<Push> round;
  std::uint64_t samples = 0;
  ++range.round;
  for (auto& queue : range.gathered) {
    if (queue.empty()) continue;
    samples += queue.front().samples;
    STARLING_CHECK(queue.front().step == range.round);
    round.push_back(std::move(queue.front()));
    queue.erase(queue.begin());
  }
  if (std::holds_alternative<Merge<T>>(options_.applier)) {
    for (const Push& push : round) {
      if (push.update.empty()) continue;
      ++range.updates;
      apply(id, range, push.update, 1);
    }
  } else if (samples > 0) {
    apply_mean(id, range, round, samples);
  }
  for (const Push& push : round) count(push, range);
}

/// Applies the sample-weighted mean of a round, taken in worker order, once.
template <class T>
void Shard<T>::apply_mean(RangeId id, Held& range, std::span<const Push> round,
                          std::uint64_t samples) {
  const Range& shape = options_.layout->ranges[id];
  const std::size_t unit = shape.row_size > 0 ? shape.row_size : shape.count;
  mean_.assign(shape.count, T{0});
  touched_.assign(shape.count / unit, false);
  for (const Push& push : round) {
    if (push.samples == 0) continue;
    const T share =
        static_cast<T>(static_cast<double>(push.samples) / static_cast<double>(samples));
    for_each_piece<T>(shape, push.update, [&](std::size_t from, std::span<const T> update) {
      models::axpy(share, update, std::span{mean_}.subspan(from, update.size()));
      for (std::size_t u = from / unit; u < (from + update.size()) / unit; ++u) touched_[u] = true;
    });
  }
  if (std::ranges::find(touched_, true) == touched_.end()) return;
  ++range.updates;
  for (std::size_t u = 0; u < touched_.size();) {
    std::size_t end = u;
    while (end < touched_.size() && touched_[end]) ++end;
    if (end > u) {
      make_writable<T>(range.value);
      make_writable<T>(range.slots);
      apply_piece(id, range, u * unit,
                  std::span<const T>{mean_}.subspan(u * unit, (end - u) * unit), 1);
    }
    u = end + 1;
  }
}

template <class T>
void Shard<T>::apply(RangeId id, Held& range, const Slice& update, double weight) {
  make_writable<T>(range.value);
  make_writable<T>(range.slots);
  for_each_piece<T>(options_.layout->ranges[id], update,
                    [&](std::size_t from, std::span<const T> piece) {
                      apply_piece(id, range, from, piece, weight);
                    });
}

/// Applies consecutive elements of a range, segment by segment.
template <class T>
void Shard<T>::apply_piece(RangeId id, Held& range, std::size_t from, std::span<const T> update,
                           double weight) {
  const Range& shape = options_.layout->ranges[id];
  const auto value = range.value->template as<T>();
  const auto slots = range.slots->template as<T>();
  for (const Segment& segment : shape.segments) {
    const std::size_t first = std::max(from, segment.offset);
    const std::size_t last = std::min(from + update.size(), segment.offset + segment.count);
    if (first >= last) continue;
    const auto part = value.subspan(first, last - first);
    const auto change = update.subspan(first - from, last - first);
    const auto& parameter = options_.layout->parameters[segment.parameter];
    if (const auto* merge = std::get_if<Merge<T>>(&options_.applier)) {
      (*merge)({segment.parameter, segment.parameter_offset + first - segment.offset}, part,
               change);
      continue;
    }
    if (!parameter.trained) {
      models::axpy(static_cast<T>(weight), change, part);
      continue;
    }
    const auto& descend = std::get<GradientApplier>(options_.applier);
    models::apply<T>(descend.optimizer, part, change, slots.empty() ? slots : slots.subspan(first),
                     shape.count,
                     {.rate_scale = weight * models::factor(descend.schedule, range.samples),
                      .l2 = parameter.decay ? descend.l2 : 0,
                      .t = range.updates});
  }
}

template <class T>
void Shard<T>::on(const Context& context, const Ended& ended) {
  worker_gone(context, ended.worker);
}

template <class T>
void Shard<T>::on_left(const Context& context, MemberId worker) {
  for (Held& range : held_)
    std::erase_if(range.parked, [&](const Pull& pull) { return pull.worker == worker; });
  worker_gone(context, worker);
}

template <class T>
void Shard<T>::worker_gone(const Context& context, MemberId worker) {
  if (!options_.bsp) return;
  for (const RangeId range : ranges_) end(context, range, worker);
}

template <class T>
bool Shard<T>::end(const Context& context, RangeId id, MemberId worker) {
  Held& range = held(id);
  if (!std::exchange(range.awaited.at(worker), std::nullopt)) return false;
  range.missing = count_missing(range);
  complete_rounds(context, id, range);
  return true;
}

template <class T>
void Shard<T>::keep_awaiting(const Context& context, RangeId id,
                             const std::function<bool(MemberId, Incarnation)>& lives) {
  Held& range = held(id);
  for (auto& awaited : range.awaited) {
    if (!awaited || lives(awaited->worker, awaited->incarnation)) continue;
    std::erase_if(range.parked, [&](const Pull& pull) { return pull.worker == awaited->worker; });
    awaited.reset();
  }
  range.missing = count_missing(range);
  complete_rounds(context, id, range);
}

/// Adds a worker that joins: none of its pushes is in a round yet.
template <class T>
PushResult Shard<T>::enter(const Context& context, const Push& push, Held& range) {
  LedgerEntry& last = range.ledger[push.worker];
  if (push.incarnation < last.incarnation) return PushResult::refused;
  auto& awaited = range.awaited[push.worker];
  if (awaited && awaited->incarnation == push.incarnation) return PushResult::known;
  last.incarnation = push.incarnation;
  last.step = std::max(last.step, push.step);
  awaited = Awaited{push.worker, push.incarnation, push.step};
  range.missing = count_missing(range);
  complete_rounds(context, push.range, range);
  return PushResult::taken;
}

template <class T>
void Shard<T>::on(const Context& context, const Snapshot& request) {
  if (request.round > 0) {
    if (!options_.bsp) return;  // there are no rounds
    due_ = request;
  }
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Step round = held_[i].round;
    if (request.round == 0 || round == request.round)
      context.send(ToObserver{}, state(ranges_[i], held_[i], request.ticket));
    else if (round > request.round)
      context.send(ToObserver{}, RangeState{.range = ranges_[i],
                                            .value = {},
                                            .slots = {},
                                            .round = round,
                                            .ledger = {},
                                            .ticket = request.ticket});
  }
}

template <class T>
RangeState Shard<T>::state(RangeId id, const Held& range, std::uint64_t ticket) const {
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
          .ticket = ticket};
}

template <class T>
Step Shard<T>::highest_step() const {
  Step highest = 0;
  for (const Held& range : held_)
    for (const LedgerEntry& entry : range.ledger) highest = std::max(highest, entry.step);
  return highest;
}

template <class T>
RangeState Shard<T>::hand_over(RangeId range) const {
  STARLING_CHECK(holds(range));
  const Held& all = held_[position_[range]];
  RangeState copy = state(range, all, 0);
  copy.ledger = all.ledger;
  for (const auto& queue : all.gathered)
    copy.gathered.insert(copy.gathered.end(), queue.begin(), queue.end());
  if (options_.bsp) {
    copy.awaited.emplace();
    for (const auto& awaited : all.awaited)
      if (awaited) copy.awaited->push_back(*awaited);
  }
  return copy;
}

template class Shard<float>;
template class Shard<double>;

}  // namespace starling::core
