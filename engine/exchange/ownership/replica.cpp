#include "starling/engine/exchange/ownership/replica.hpp"

#include <algorithm>

#include "starling/base/check.hpp"

namespace starling::core {

template <class T>
Replica<T>::Replica(ReplicaOptions<T> options)
    : options_(std::move(options)),
      shard_(options_.shard),
      parts_(options_.shard.layout->ranges.size()) {}

template <class T>
void Replica<T>::on_configuration(const ReplicaContext& context, const Configuration& next,
                                  Epoch former) {
  for (RangeId r = 0; r < parts_.size(); ++r) {
    const Ownership& ownership = next.ranges[r];
    const RangeOwner* self = ownership.find(options_.self);
    Part& part = parts_[r];
    // An owner that lost the range in between lacks the updates acknowledged meanwhile.
    if (part.view > 0 && (self == nullptr || self->since > former)) give_up(r);
    if (self == nullptr) continue;
    // Acknowledgements go to the incarnations that pushed, and to no later ones.
    std::erase_if(part.pending, [&](const Pending& waiting) {
      return !next.contains(waiting.worker, waiting.ack.incarnation);
    });
    if (part.view != ownership.view) begin_view(context, r, next, former == 0 && next.epoch == 1);
  }
}

template <class T>
void Replica<T>::give_up(RangeId range) {
  changes_ += parts_[range].full ? 1 : 0;
  parts_[range] = {};
  shard_.release(range);
}

template <class T>
void Replica<T>::begin_view(const ReplicaContext& context, RangeId range, const Configuration& next,
                            bool founding) {
  const Ownership& ownership = next.ranges[range];
  Part& part = parts_[range];
  if (founding) {
    RangeState start = options_.start->at(range);
    start.awaited.emplace();
    for (const Member& member : next.members)
      if (member.works) start.awaited->push_back({member.id, member.incarnation, start.round});
    shard_.take_in(start);
    part.full = true;
    ++changes_;
  }
  part.view = ownership.view;
  part.leader = ownership.owners.front().id;
  part.primary = part.leader == options_.self;
  part.installed = part.primary || founding;
  part.number = 0;
  part.copies.clear();
  part.pending.clear();  // workers push again to the owners of the new view
  if (!part.primary) return;
  STARLING_CHECK(part.full);
  for (const RangeOwner& owner : ownership.owners)
    if (owner.id != options_.self) part.copies.push_back({owner.id, founding, 0});
  if (founding) return;
  if (options_.shard.bsp)  // the view changes which workers are awaited, and copies begin with that
    shard_.keep_awaiting(context.core, range, [&](MemberId worker, Incarnation incarnation) {
      return next.contains(worker, incarnation);
    });
  if (part.copies.empty()) return;
  const auto state = std::make_shared<const RangeState>(shard_.hand_over(range));
  for (const Copy& copy : part.copies) context.out.emplace_back(copy.id, Install{part.view, state});
}

template <class T>
bool Replica<T>::on(const ReplicaContext& context, const std::shared_ptr<const Push>& push) {
  if (push->range >= parts_.size()) return true;  // no worker of the job sends that
  Part& part = parts_[push->range];
  if (!part.primary || part.view != push->view) return false;
  const PushResult receipt = shard_.take(context.core, *push);
  if (receipt == PushResult::refused) return true;
  if (receipt == PushResult::taken && !part.copies.empty()) {
    ++part.number;
    for (const Copy& copy : part.copies)
      context.out.emplace_back(copy.id, Forward{push->range, part.view, part.number, push});
  }
  // A repeated push may have been taken in a former view, or may still wait for other owners: all
  // owners hold it once they hold everything taken up to now.
  part.pending.push_back(
      {part.number, push->worker, {push->range, push->step, push->incarnation, push->view}});
  acknowledge(context, part);
  return true;
}

template <class T>
bool Replica<T>::on(const ReplicaContext& context, const Pull& pull) {
  if (pull.range >= parts_.size()) return true;
  if (!parts_[pull.range].primary) return false;
  shard_.on(context.core, pull);
  return true;
}

template <class T>
void Replica<T>::on(const ReplicaContext& context, const Ended& ended) {
  if (!options_.shard.bsp) return;
  for (RangeId r = 0; r < parts_.size(); ++r) {
    Part& part = parts_[r];
    if (!part.primary || !shard_.end(context.core, r, ended.worker)) continue;
    ++part.number;
    for (const Copy& copy : part.copies)
      context.out.emplace_back(copy.id, Forward{r, part.view, part.number, nullptr, ended.worker});
  }
}

template <class T>
bool Replica<T>::on(const ReplicaContext& context, MemberId from, const Install& install) {
  const RangeId range = install.state->range;
  Part& part = parts_.at(range);
  if (part.view != install.view || part.leader != from || part.primary) return false;
  if (part.installed || !shard_.fits(*install.state)) return true;
  shard_.take_in(*install.state);
  part.installed = true;
  changes_ += part.full ? 0 : 1;
  part.full = true;
  context.out.emplace_back(from, Held{range, part.view, 0});
  return true;
}

template <class T>
bool Replica<T>::on(const ReplicaContext& context, MemberId from, const Forward& forward) {
  const RangeId range = forward.range;
  Part& part = parts_.at(range);
  if (part.view != forward.view || part.leader != from || part.primary) return false;
  if (!part.installed || forward.number <= part.number) return true;
  STARLING_CHECK(forward.number == part.number + 1);
  // The state and the push are the primary's, so this shard takes the push as well.
  if (forward.push)
    STARLING_CHECK(shard_.take(context.core, *forward.push) == PushResult::taken);
  else
    STARLING_CHECK(shard_.end(context.core, range, forward.ended));
  part.number = forward.number;
  context.out.emplace_back(from, Held{range, part.view, part.number});
  return true;
}

template <class T>
bool Replica<T>::on(const ReplicaContext& context, MemberId from, const Held& held) {
  Part& part = parts_.at(held.range);
  if (!part.primary || part.view != held.view) return false;
  const auto copy = std::ranges::find(part.copies, from, &Copy::id);
  if (copy == part.copies.end() || held.number > part.number) return true;
  copy->installed = true;
  copy->held = std::max(copy->held, held.number);
  acknowledge(context, part);
  return true;
}

template <class T>
bool Replica<T>::everywhere(const Part& part, std::uint64_t number) {
  return std::ranges::all_of(
      part.copies, [&](const Copy& copy) { return copy.installed && copy.held >= number; });
}

template <class T>
void Replica<T>::acknowledge(const ReplicaContext& context, Part& part) {
  while (!part.pending.empty() && everywhere(part, part.pending.front().number)) {
    const Pending& next = part.pending.front();
    context.core.send(ToWorker{next.worker}, next.ack);
    part.pending.pop_front();
  }
}

template <class T>
std::vector<RangeId> Replica<T>::full_ranges() const {
  std::vector<RangeId> ranges;
  for (RangeId r = 0; r < parts_.size(); ++r)
    if (parts_[r].full) ranges.push_back(r);
  return ranges;
}

template class Replica<float>;
template class Replica<double>;

}  // namespace starling::core
