/// How a Shard in a bulk-synchronous job queues the pushes of a round, and when a round is
/// complete.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

void Shard::queue_push(const OwnershipContext& context, const Push& push, HeldRange& range) {
  auto& queue = range.queued_pushes[push.worker];
  if (queue.empty() && is_awaited(range, push.worker)) --range.missing_pushes;
  queue.push_back(push);
  complete_rounds(context, push.range, range);
}

/// True if the next round awaits a push of `worker`.
bool Shard::is_awaited(const HeldRange& range, MemberId worker) {
  return range.awaited[worker] && range.awaited[worker]->after_round <= range.round;
}

std::size_t Shard::count_missing(const HeldRange& range) {
  std::size_t missing_pushes = 0;
  for (MemberId worker = 0; worker < range.awaited.size(); ++worker)
    missing_pushes += is_awaited(range, worker) && range.queued_pushes[worker].empty() ? 1 : 0;
  return missing_pushes;
}

void Shard::complete_rounds(const OwnershipContext& context, RangeId id, HeldRange& range) {
  const auto is_filled = [](const auto& queue) { return !queue.empty(); };
  // A round that awaits no worker is completed without pushes, but only when some worker has joined
  // for a later round.
  const auto joins_later_round = [&](const auto& awaited) {
    return awaited && awaited->after_round > range.round;
  };
  while (range.missing_pushes == 0 && (std::ranges::any_of(range.queued_pushes, is_filled) ||
                                       std::ranges::any_of(range.awaited, joins_later_round))) {
    apply_round(id, range);
    range.missing_pushes = count_missing(range);
    for (const Pull& pull : range.waiting_pulls)
      if (range.round >= pull.after_step) send_value(context, pull, range);
    std::erase_if(range.waiting_pulls,
                  [&](const Pull& pull) { return range.round >= pull.after_step; });
    if (range.round == pending_snapshot_.round)
      context.send_to_observer(make_state(id, range, pending_snapshot_.request_id));
  }
}

void Shard::apply_round(RangeId id, HeldRange& range) {
  std::vector<Push> pushes;
  std::vector<RoundPart> parts;
  ++range.round;
  for (auto& queue : range.queued_pushes) {
    if (queue.empty()) continue;
    STARLING_CHECK(queue.front().step == range.round);
    parts.push_back({queue.front().update, queue.front().samples});
    pushes.push_back(std::move(queue.front()));
    queue.erase(queue.begin());
  }
  options_.applier->apply_round(*options_.layout, id, range.values, parts, round_scratch_);
  for (const Push& push : pushes) count_samples(push, range);
}

bool Shard::on_worker_ended(const OwnershipContext& context, RangeId id, MemberId worker) {
  if (!options_.bsp) return false;
  HeldRange& range = held(id);
  if (!std::exchange(range.awaited.at(worker), std::nullopt)) return false;
  range.missing_pushes = count_missing(range);
  complete_rounds(context, id, range);
  return true;
}

void Shard::await_only(const OwnershipContext& context, RangeId id,
                       const std::function<bool(MemberId, Incarnation)>& is_member) {
  HeldRange& range = held(id);
  for (auto& awaited : range.awaited) {
    if (!awaited || is_member(awaited->worker, awaited->incarnation)) continue;
    std::erase_if(range.waiting_pulls,
                  [&](const Pull& pull) { return pull.worker == awaited->worker; });
    awaited.reset();
  }
  range.missing_pushes = count_missing(range);
  complete_rounds(context, id, range);
}

/// Handles the Enter of a joining worker: the rounds after push.step await its pushes. Completes
/// the rounds that can be completed.
PushResult Shard::add_joiner(const OwnershipContext& context, const Push& push, HeldRange& range) {
  LedgerEntry& last = range.ledger[push.worker];
  if (push.incarnation < last.incarnation) return PushResult::refused;
  auto& awaited = range.awaited[push.worker];
  if (awaited && awaited->incarnation == push.incarnation) return PushResult::duplicate;
  last = {push.incarnation, std::max(last.step, push.step), 0};
  awaited = AwaitedWorker{
      .worker = push.worker, .incarnation = push.incarnation, .after_round = push.step};
  range.missing_pushes = count_missing(range);
  complete_rounds(context, push.range, range);
  return PushResult::accepted;
}

}  // namespace starling::core
