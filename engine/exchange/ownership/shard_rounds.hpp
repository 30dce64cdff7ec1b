/// Internal: the rounds of a bulk-synchronous Shard: whose pushes they await, and when they are
/// complete. Only shard.cpp includes it.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

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

}  // namespace starling::core
