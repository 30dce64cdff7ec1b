#include "starling/engine/exchange/ownership/replica.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::core {

Replica::Replica(ExchangeOptions options)
    : self_(options.self.id),
      bsp_(options.bsp),
      initial_states_(options.initial_states),
      shard_(std::move(options)) {}

void Replica::on_configuration(const OwnershipContext& context, const Configuration& next,
                               Epoch former) {
  for (RangeId r = 0; r < next.ranges.size(); ++r) {
    const Ownership& ownership = next.ranges[r];
    const RangeOwner* self = ownership.find(self_);
    if (ranges_.empty() && self == nullptr) continue;
    if (ranges_.empty()) ranges_.resize(next.ranges.size());
    OwnedRange& owned = ranges_[r];
    // If this member did not own the range in some epoch since `former`, it lacks the updates that
    // were acknowledged in that epoch.
    if (owned.owner_epoch > 0 && (self == nullptr || self->since > former)) release(r);
    if (self == nullptr) continue;
    // Drops the acknowledgements for incarnations that are not members any more.
    std::erase_if(owned.pending_acks, [&](const PendingAck& pending) {
      return !next.contains(pending.worker, pending.ack.incarnation);
    });
    if (owned.owner_epoch != ownership.owner_epoch)
      begin_owner_epoch(context, r, next, former == 0 && next.epoch == 1);
  }
  if (std::ranges::any_of(ranges_, &OwnedRange::primary))
    workers_ = static_cast<std::uint32_t>(std::ranges::count(next.members, true, &Member::works));
}

void Replica::release(RangeId range) {
  full_ranges_version_ += ranges_[range].full ? 1 : 0;
  ranges_[range] = {};
  shard_.release(range);
}

void Replica::begin_owner_epoch(const OwnershipContext& context, RangeId range,
                                const Configuration& next, bool is_first_epoch) {
  const Ownership& ownership = next.ranges[range];
  OwnedRange& owned = ranges_[range];
  if (is_first_epoch) {
    OwnerState first{initial_states_->at(range)};
    first.awaited.emplace();
    for (const Member& member : next.members)
      if (member.works)
        first.awaited->push_back({member.id, member.incarnation, first.state.round});
    shard_.put_range(first);
    owned.full = true;
    ++full_ranges_version_;
  }
  owned.owner_epoch = ownership.owner_epoch;
  owned.primary_id = ownership.owners.front().id;
  owned.primary = owned.primary_id == self_;
  owned.installed = owned.primary || is_first_epoch;
  owned.number = 0;
  owned.others.clear();
  owned.pending_acks.clear();  // the workers will send these pushes again in the new owner epoch
  if (!owned.primary) return;
  STARLING_CHECK(owned.full);
  for (const RangeOwner& owner : ownership.owners)
    if (owner.id != self_) owned.others.push_back({owner.id, is_first_epoch, 0});
  if (is_first_epoch) return;
  if (bsp_)  // before the state is handed over, because it names the awaited workers
    shard_.await_only(context, range, [&](MemberId worker, Incarnation incarnation) {
      return next.contains(worker, incarnation);
    });
  if (owned.others.empty()) return;
  const auto state = std::make_shared<const OwnerState>(shard_.full_state(range));
  for (const OtherOwner& other : owned.others)
    context.send(other.id, Install{owned.owner_epoch, state});
}

bool Replica::on(const OwnershipContext& context, const std::shared_ptr<const Push>& push) {
  if (!owned_range(push->range).primary) return false;
  OwnedRange& owned = ranges_[push->range];
  if (owned.owner_epoch != push->owner_epoch) return false;
  const PushResult result = shard_.accept(context, *push, workers_);
  if (result == PushResult::refused) return true;
  if (result == PushResult::accepted && !owned.others.empty()) {
    ++owned.number;
    for (const OtherOwner& other : owned.others)
      context.send(other.id,
                   Forward{push->range, owned.owner_epoch, owned.number, push, 0, workers_});
  }
  // This member may have accepted a repeated push in a former owner epoch, or other owners may not
  // hold it yet. All owners hold it once they hold everything up to the current number.
  owned.pending_acks.push_back({owned.number,
                                push->worker,
                                {push->range, push->step, push->incarnation, push->owner_epoch}});
  acknowledge(context, owned);
  return true;
}

bool Replica::on(const OwnershipContext& context, const Pull& pull) {
  if (!owned_range(pull.range).primary) return false;
  shard_.on(context, pull);
  return true;
}

void Replica::on(const OwnershipContext& context, const Ended& ended) {
  for (RangeId r = 0; r < ranges_.size(); ++r) {
    OwnedRange& owned = ranges_[r];
    if (!owned.primary || !shard_.on_worker_ended(context, r, ended.worker)) continue;
    ++owned.number;
    for (const OtherOwner& other : owned.others)
      context.send(other.id, Forward{r, owned.owner_epoch, owned.number, nullptr, ended.worker});
  }
}

bool Replica::on(const OwnershipContext& context, MemberId from, const Install& install) {
  const RangeId range = install.state->state.range;
  if (!is_backup_of(range, install.owner_epoch, from)) return false;
  OwnedRange& owned = ranges_[range];
  if (owned.installed || !shard_.fits(*install.state)) return true;
  shard_.put_range(*install.state);
  owned.installed = true;
  full_ranges_version_ += owned.full ? 0 : 1;
  owned.full = true;
  context.send(from, Held{range, owned.owner_epoch, 0});
  return true;
}

bool Replica::on(const OwnershipContext& context, MemberId from, const Forward& forward) {
  const RangeId range = forward.range;
  if (!is_backup_of(range, forward.owner_epoch, from)) return false;
  OwnedRange& owned = ranges_[range];
  if (!owned.installed || forward.number <= owned.number) return true;
  STARLING_CHECK(forward.number == owned.number + 1);
  // This shard has the primary's state and handles the same pushes in the same order, so it accepts
  // this push as the primary did.
  if (forward.push)
    STARLING_CHECK(shard_.accept(context, *forward.push, forward.workers) == PushResult::accepted);
  else
    STARLING_CHECK(shard_.on_worker_ended(context, range, forward.ended));
  owned.number = forward.number;
  context.send(from, Held{range, owned.owner_epoch, owned.number});
  return true;
}

bool Replica::on(const OwnershipContext& context, MemberId from, const Held& held) {
  if (!owned_range(held.range).primary) return false;
  OwnedRange& owned = ranges_[held.range];
  if (owned.owner_epoch != held.owner_epoch) return false;
  const auto other = std::ranges::find(owned.others, from, &OtherOwner::id);
  if (other == owned.others.end() || held.number > owned.number) return true;
  other->installed = true;
  other->held = std::max(other->held, held.number);
  acknowledge(context, owned);
  return true;
}

bool Replica::is_backup_of(RangeId range, Epoch owner_epoch, MemberId primary) const {
  const OwnedRange& owned = owned_range(range);
  return owner_epoch > 0 && owned.owner_epoch == owner_epoch && owned.primary_id == primary &&
         !owned.primary;
}

bool Replica::is_held_by_all(const OwnedRange& owned, std::uint64_t number) {
  return std::ranges::all_of(owned.others, [&](const OtherOwner& other) {
    return other.installed && other.held >= number;
  });
}

void Replica::acknowledge(const OwnershipContext& context, OwnedRange& owned) {
  const auto is_pending = [&](const PendingAck& next) {
    return !is_held_by_all(owned, next.number);
  };
  const auto end = std::ranges::find_if(owned.pending_acks, is_pending);
  for (auto next = owned.pending_acks.begin(); next != end; ++next)
    context.send(next->worker, next->ack);
  owned.pending_acks.erase(owned.pending_acks.begin(), end);
}

std::vector<RangeId> Replica::full_ranges() const {
  std::vector<RangeId> ranges;
  for (RangeId r = 0; r < ranges_.size(); ++r)
    if (ranges_[r].full) ranges.push_back(r);
  return ranges;
}

}  // namespace starling::core
