#include "starling/engine/core/membership/membership.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/engine/core/wire_size.hpp"

namespace starling::core {

Membership::Membership(MembershipOptions options, std::uint64_t salt)
    : options_(std::move(options)), self_(options_.self), members_(salt) {
  STARLING_CHECK(self_.id != 0 && !self_.address.empty());
  std::erase(options_.seeds, self_.address);
}

// --- events -------------------------------------------------------------------------------------

void Membership::start(const MembershipContext& context) {
  begin(context);
  joined_ = options_.seeds.empty();
  seed_ = joined_ ? 0 : context.random.below(options_.seeds.size());
  if (!joined_) join_at_ = now_;
  sync_wait_ = options_.sync_every;
  sync_at_ = now_ + sync_wait_;
  // Members that were started together do not act together.
  const auto within = [&](Time time) {
    return now_ + Time{static_cast<Time::rep>(
                      context.random.below(static_cast<std::uint64_t>(time.count())))};
  };
  probe_at_ = within(options_.probe_every);
  retry_at_ = within(options_.retry_every);
  join(context);
  finish(context);
}

void Membership::on(const MembershipContext& context, const MembershipMessage& message) {
  const NodeRecord& from = message.from;
  if (!is_sane(from) || from.id == self_.id) return;
  if (from.state != NodeState::alive && from.state != NodeState::left) return;
  begin(context);
  const bool has_left = self_.state == NodeState::left;
  const auto* taken = std::get_if<NameTaken>(&message.body);
  if (!has_left && may_join(context, from)) {
    const MemberEntry* was = members_.find(from.id);
    const bool was_dead = was != nullptr && was->record.state == NodeState::dead;
    learn(context, {from, from.id}, Source::gossip);
    settle_name(context, from);
    const std::size_t count = std::min(message.updates.size(), updates_max);
    for (std::size_t i = 0; i < count; ++i) learn(context, message.updates[i], Source::gossip);
    std::visit([&](const auto& body) { receive(context, from, body); }, message.body);
    // Perhaps a partition has healed: much may be news on either side.
    const MemberEntry* is = members_.find(from.id);
    if (was_dead && is != nullptr && is_live(is->record.state)) sync_with(context, from);
  } else if (const auto* ping = std::get_if<Ping>(&message.body); ping != nullptr && has_left) {
    receive(context, from, *ping);  // the answer says that it has left
  } else if (!has_left && taken != nullptr && taken->holder.id == from.id) {
    receive(context, from, *taken);  // it has this one's name, and stays
  }
  finish(context);
}

void Membership::on_timer(const MembershipContext& context) {
  timer_.fired(context.now);
  begin(context);
  if (self_.state != NodeState::left) {
    send_nacks(context);
    probe_indirectly(context);
    end_probe(context);
    judge(context);
    forget_old();
    probe(context);
    sync(context);
    join(context);
    retry(context);
  }
  gossip(context);
  finish(context);
}

void Membership::leave(const MembershipContext& context) {
  if (self_.state == NodeState::left) return;
  begin(context);
  news_ = {};
  self_.state = NodeState::left;
  renew(self_.incarnation);
  gossip_at_ = now_;
  gossip(context);
  finish(context);
}

void Membership::offer(const MembershipContext& context, std::uint32_t workers) {
  begin(context);
  self_.workers = workers;
  if (self_.state != NodeState::left) renew(self_.incarnation);
  finish(context);
}

/// Sets the member's clock. A late timer shows that this member did not run: that time does not
/// count, for answers may have arrived meanwhile and still wait to be handled.
void Membership::begin(const MembershipContext& context) {
  if (due_ != never && context.now > due_ + options_.late) {
    const Time late = context.now - due_;
    slept_ += late;
    ail(1 + static_cast<unsigned>(
                std::min<Time::rep>(late / options_.probe_every, options_.health_max)));
  }
  now_ = context.now - slept_;
}

void Membership::finish(const MembershipContext& context) {
  const Time next = next_deadline();
  due_ = next == never ? never : next + slept_;
  if (due_ != never) timer_.want(context, due_);
}

Time Membership::next_deadline() const {
  Time next = news_.empty() ? never : gossip_at_;
  if (self_.state == NodeState::left) return next;
  next = std::min({next, probe_at_, sync_at_, join_at_, retry_at_});
  if (probe_ && !probe_->indirect)
    next = std::min(next, probe_->started + options_.probe_timeout * (1 + health_));
  if (!nacks_.empty())
    next = std::min(next, relays_.at(nacks_.front()).since + options_.nack_after);
  if (!suspicions_.empty()) next = std::min(next, suspicions_.begin()->first);
  if (!graves_.empty()) next = std::min(next, graves_.begin()->first + options_.dead_for);
  return next;
}

// --- probes -------------------------------------------------------------------------------------

void Membership::probe(const MembershipContext& context) {
  if (now_ < probe_at_) return;
  probe_at_ = now_ + options_.probe_every * (1 + health_);
  const MemberEntry* target = members_.next(context.random);
  // To probe a member again that this one suspects would be news to no other: it is only pinged.
  const std::size_t others = std::max(members_.live().size(), std::size_t{1}) - 1;
  for (std::size_t told = std::min(others, told_max); told > 0 && accused(*target); --told) {
    ping(context, *target);
    target = members_.next(context.random);
  }
  if (target == nullptr) return;
  ++counts_.probes;
  probe_ = Probe{target->record.id, ++sequence_, now_};
  send(context, target->record.address, probe_->target, Ping{probe_->target, sequence_});
}

void Membership::probe_indirectly(const MembershipContext& context) {
  if (!probe_ || probe_->indirect) return;
  if (now_ < probe_->started + options_.probe_timeout * (1 + health_)) return;
  probe_->indirect = true;
  const auto helpers =
      members_.draw_live(context.random, options_.probe_helpers, [&](const MemberEntry& entry) {
        return entry.record.state == NodeState::alive && entry.record.id != probe_->target;
      });
  for (const MemberEntry* helper : helpers) {
    probe_->helpers.push_back(helper->record.id);
    send(context, helper->record.address, helper->record.id,
         PingRequest{probe_->target, probe_->sequence});
  }
}

void Membership::end_probe(const MembershipContext& context) {
  if (!probe_ || now_ < probe_at_) return;
  const Probe failed = *std::exchange(probe_, std::nullopt);
  const MemberEntry* target = members_.find(failed.target);
  if (target == nullptr || !is_live(target->record.state)) return;
  ++counts_.probes_failed;
  // Where most helpers have not answered either, this member itself may be partitioned or slow.
  const bool heard = failed.nacks > 0 && 2 * failed.nacks >= failed.helpers.size();
  if (!heard && target->record.state == NodeState::alive) ail(1);
  suspect(context, failed.target);
  ping(context, *target);
}

/// Pings a member. Where it is not alive here, the message brings its record for it to refute.
void Membership::ping(const MembershipContext& context, const MemberEntry& entry) {
  send(context, entry.record.address, entry.record.id, Ping{entry.record.id, 0});
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Ping& ping) {
  if (ping.to == self_.id) send(context, from.address, from.id, PingAck{ping.sequence});
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const PingAck& ack) {
  if (probe_ && ack.sequence == probe_->sequence) {
    if (from.id == probe_->target || probe_->asked(from.id)) {
      probe_.reset();
      if (health_ > 0) --health_;
    }
    return;
  }
  const auto relay = relays_.find(ack.sequence);
  if (relay == relays_.end() || relay->second.target != from.id) return;
  if (const MemberEntry* requester = members_.find(relay->second.requester))
    send(context, requester->record.address, requester->record.id, PingAck{relay->second.sequence});
  std::erase(nacks_, relay->first);
  relays_.erase(relay);
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const PingRequest& asked) {
  if (asked.target == self_.id)
    return send(context, from.address, from.id, PingAck{asked.sequence});
  const MemberEntry* target = members_.find(asked.target);
  if (target == nullptr || relays_.size() >= relays_max)
    return send(context, from.address, from.id, PingNack{asked.sequence});
  relays_.emplace(++sequence_, Relay{asked.target, from.id, asked.sequence, now_});
  nacks_.push_back(sequence_);
  send(context, target->record.address, asked.target, Ping{asked.target, sequence_});
}

void Membership::receive(const MembershipContext&, const NodeRecord& from, const PingNack& nack) {
  if (probe_ && nack.sequence == probe_->sequence && probe_->asked(from.id)) ++probe_->nacks;
}

void Membership::send_nacks(const MembershipContext& context) {
  while (!nacks_.empty()) {
    const Relay& relay = relays_.at(nacks_.front());
    if (now_ < relay.since + options_.nack_after) break;
    nacks_.pop_front();
    if (const MemberEntry* requester = members_.find(relay.requester))
      send(context, requester->record.address, requester->record.id, PingNack{relay.sequence});
  }
  // An answer counts as long as the requester may be waiting.
  const Time longest = options_.probe_every * (1 + options_.health_max);
  while (!relays_.empty() && relays_.begin()->second.since + longest <= now_)
    relays_.erase(relays_.begin());
}

/// Pings a dead member now and then: it may have been a partition.
void Membership::retry(const MembershipContext& context) {
  if (now_ < retry_at_) return;
  retry_at_ = now_ + options_.retry_every;
  const auto& dead = members_.dead();
  if (dead.empty() || context.random.below(members_.live().size() + 1) >= dead.size()) return;
  ping(context, *members_.find(dead[context.random.below(dead.size())]));
}

// --- news ---------------------------------------------------------------------------------------

void Membership::send(const MembershipContext& context, const std::string& address, NodeId to,
                      MembershipMessage::Body body) {
  MembershipMessage message{self_, std::move(body)};
  ride(message, to);
  context.out.push_back(MembershipSend{address, std::move(message)});
}

/// Adds news to a message; first the receiver's own record, if the receiver has to refute it.
void Membership::ride(MembershipMessage& message, NodeId to) {
  std::size_t bytes = wire_size(message);
  const auto add = [&](const MemberEntry& entry) {
    NodeUpdate update{entry.record, entry.by};
    bytes += wire_size(update);
    if (bytes > options_.message_bytes) return false;
    message.updates.push_back(std::move(update));
    return true;
  };
  const MemberEntry* receiver = members_.find(to);
  if (receiver != nullptr && receiver->record.state != NodeState::alive) add(*receiver);
  const double members = static_cast<double>(members_.live().size()) + 2;
  const auto limit = static_cast<unsigned>(std::ceil(options_.gossip_repeats * std::log2(members)));
  news_.take(updates_max, limit, [&](NodeId id) {
    // Leaves out this member, which each message describes, and the receiver, which knows itself.
    const MemberEntry* entry = id == to ? nullptr : members_.find(id);
    return entry == nullptr || add(*entry);
  });
}

void Membership::gossip(const MembershipContext& context) {
  if (news_.empty() || now_ < gossip_at_) return;
  gossip_at_ = now_ + options_.gossip_every;
  const auto receivers = members_.draw_live(context.random, options_.gossip_to);
  for (const MemberEntry* receiver : receivers)
    if (!news_.empty()) send(context, receiver->record.address, receiver->record.id, Gossip{});
  if (receivers.empty()) news_ = {};  // a new member asks for all records
  if (self_.state == NodeState::left && news_.empty()) context.out.push_back(HasLeft{});
}

// --- joining and comparing ----------------------------------------------------------------------

/// Sends the next seed node a digest.
void Membership::ask_next_seed(const MembershipContext& context) {
  seed_ = (seed_ + 1) % options_.seeds.size();
  send(context, options_.seeds[seed_], 0, Digest{.buckets = summary()});
}

void Membership::join(const MembershipContext& context) {
  if (now_ < join_at_) return;
  join_at_ = now_ + options_.join_again;
  ask_next_seed(context);
}

void Membership::sync(const MembershipContext& context) {
  if (now_ < sync_at_) return;
  sync_wait_ = std::min(2 * sync_wait_, options_.sync_every);
  const auto wait = static_cast<std::uint64_t>(sync_wait_.count());
  sync_at_ = now_ + Time{static_cast<Time::rep>(wait / 2 + context.random.below(wait + 1))};
  const auto other = members_.draw_live(context.random, 1);
  // A seed node may know nodes that were forgotten here in a long partition. Few of many nodes ask.
  const bool look = other.empty() || context.random.below(10 + members_.live().size() / 10) == 0;
  if (look && joined_ && !options_.seeds.empty()) return ask_next_seed(context);
  if (!other.empty()) sync_with(context, other.front()->record);
}

void Membership::sync_with(const MembershipContext& context, const NodeRecord& member) {
  if (now_ < sync_free_at_) return;
  sync_free_at_ = now_ + options_.gossip_every;
  send(context, member.address, member.id, Digest{.buckets = summary()});
}

/// Returns a power of two, so that each bucket has some eight members.
std::size_t Membership::buckets() const {
  return std::min(std::bit_ceil(members_.live().size() / 8 + 1), MemberDigest::buckets_max);
}

/// Returns the digest of this member and the live ones that it knows.
std::vector<std::uint64_t> Membership::summary() const {
  MemberDigest digest = members_.digest();
  digest.toggle(self_);
  return digest.folded(buckets());
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Digest& digest) {
  const std::size_t count = digest.buckets.size();
  if (!std::has_single_bit(count) || count > MemberDigest::buckets_max) return;
  if (digest.answer && !std::exchange(joined_, true)) {
    join_at_ = never;
    sync_wait_ = options_.sync_first;
    sync_at_ = now_ + sync_wait_;
    context.out.push_back(HasJoined{});
  }
  send_records(context, from, digest.buckets);
  // Comes last, so that the other side does not send back the records that it has from here.
  if (!digest.answer)
    send(context, from.address, from.id, Digest{.buckets = summary(), .answer = true});
}

void Membership::send_records(const MembershipContext& context, const NodeRecord& to,
                              const std::vector<std::uint64_t>& theirs) {
  MemberDigest digest = members_.digest();
  digest.toggle(self_);
  const std::vector<std::uint64_t> ours = digest.folded(theirs.size());
  MembershipMessage page{self_, Records{}};
  const std::size_t empty = wire_size(page);
  std::size_t bytes = empty;
  const auto turn = [&] {
    MembershipMessage full = std::exchange(page, {self_, Records{}});
    bytes = empty;
    context.out.push_back(MembershipSend{to.address, std::move(full)});
  };
  for (std::size_t bucket = 0; bucket < ours.size(); ++bucket) {
    if (ours[bucket] == theirs[bucket]) continue;
    members_.each_in(bucket, ours.size(), [&](const NodeRecord& record) {
      const std::size_t more = wire_size(record);
      if (bytes > empty && bytes + more > options_.records_bytes) turn();
      bytes += more;
      std::get<Records>(page.body).records.push_back(record);
    });
  }
  if (bytes > empty) turn();
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Records& page) {
  const std::size_t count = std::min(page.records.size(), records_max);
  for (std::size_t i = 0; i < count; ++i) learn(context, {page.records[i], from.id}, Source::sync);
}

}  // namespace starling::core
