#include "starling/engine/core/membership/membership.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "starling/base/check.hpp"
#include "starling/engine/core/wire_size.hpp"

namespace starling::core {

Membership::Membership(MembershipOptions options, std::uint64_t salt)
    : options_(std::move(options)), self_(options_.self), nodes_(salt) {
  STARLING_CHECK(self_.id != 0 && !self_.address.empty());
  std::erase(options_.seeds, self_.address);
}

// --- events -------------------------------------------------------------------------------------

void Membership::start(const MembershipContext& context) {
  begin_event(context);
  has_joined_ = options_.seeds.empty();
  seed_position_ = has_joined_ ? 0 : context.random.below(options_.seeds.size());
  if (!has_joined_) join_at_ = now_;
  sync_interval_ = options_.sync_interval;
  sync_at_ = now_ + sync_interval_;
  // Random first times keep nodes that were started together from sending at the same times.
  const auto random_time_within = [&](Time interval) {
    return now_ + Time{static_cast<Time::rep>(
                      context.random.below(static_cast<std::uint64_t>(interval.count())))};
  };
  probe_at_ = random_time_within(options_.probe_interval);
  ping_dead_at_ = random_time_within(options_.ping_dead_every);
  join(context);
  end_event(context);
}

void Membership::on(const MembershipContext& context, const MembershipMessage& message) {
  const NodeRecord& from = message.from;
  if (!is_valid(from) || from.id == self_.id) return;
  if (from.state != NodeState::alive && from.state != NodeState::left) return;
  begin_event(context);
  const bool has_left = self_.state == NodeState::left;
  const auto* taken = std::get_if<NameTaken>(&message.body);
  if (!has_left && may_join(context, from)) {
    const NodeEntry* known = nodes_.find(from.id);
    const bool was_dead = known != nullptr && known->record.state == NodeState::dead;
    learn(context, {from, from.id}, Source::gossip);
    resolve_name_conflict(context, from);
    if (NodeEntry* sender = nodes_.find(from.id)) sender->relayed_probes = 0;
    const std::size_t count = std::min(message.updates.size(), updates_max);
    for (std::size_t i = 0; i < count; ++i) learn(context, message.updates[i], Source::gossip);
    std::visit([&](const auto& body) { receive(context, from, body); }, message.body);
    // A dead node that sends again may have been in a partition: both sides may have much news.
    known = nodes_.find(from.id);
    if (was_dead && known != nullptr && is_live(known->record.state)) sync_with(context, from);
  } else if (const auto* ping = std::get_if<Ping>(&message.body); ping != nullptr && has_left) {
    // The answer says that this node has left. It does not count as one of the copies of this news
    // that send_gossip() sends.
    if (ping->to == self_.id)
      context.out.push_back(MembershipSend{from.address, {self_, PingAck{ping->sequence}}});
  } else if (!has_left && taken != nullptr && taken->holder.id == from.id) {
    receive(context, from, *taken);  // `from` has this node's name, and says that it stays
  }
  end_event(context);
}

void Membership::on_timer(const MembershipContext& context) {
  timer_.remove_due(context.now);
  begin_event(context);
  if (self_.state != NodeState::left) {
    send_nacks(context);
    probe_indirectly(context);
    end_probe(context);
    expire_suspicions(context);
    forget_old();
    probe(context);
    sync(context);
    join(context);
    ping_dead(context);
  }
  send_gossip(context);
  end_event(context);
}

void Membership::leave(const MembershipContext& context) {
  if (self_.state == NodeState::left) return;
  begin_event(context);
  news_ = {};
  self_.state = NodeState::left;
  raise_incarnation(self_.incarnation);
  gossip_at_ = now_;
  send_gossip(context);
  end_event(context);
}

void Membership::offer(const MembershipContext& context, std::uint32_t workers) {
  begin_event(context);
  self_.workers = workers;
  if (self_.state != NodeState::left) raise_incarnation(self_.incarnation);
  end_event(context);
}

/// Sets the node's clock. A late timer shows that the process did not run. The clock leaves that
/// time out, because answers that arrived in that time have not been handled yet.
void Membership::begin_event(const MembershipContext& context) {
  if (timer_due_at_ != never && context.now > timer_due_at_ + options_.late) {
    const Time late = context.now - timer_due_at_;
    stopped_time_ += late;
    raise_health_score(1 + static_cast<unsigned>(std::min<Time::rep>(late / options_.probe_interval,
                                                                     options_.health_score_max)));
  }
  now_ = context.now - stopped_time_;
}

void Membership::end_event(const MembershipContext& context) {
  const Time next = next_deadline();
  timer_due_at_ = next == never ? never : next + stopped_time_;
  if (timer_due_at_ != never) timer_.ensure(context, timer_due_at_);
}

Time Membership::next_deadline() const {
  Time next = news_.empty() ? never : gossip_at_;
  if (self_.state == NodeState::left) return next;
  next = std::min({next, probe_at_, sync_at_, join_at_, ping_dead_at_});
  if (probe_ && !probe_->is_indirect)
    next = std::min(next, probe_->started_at + options_.probe_timeout * (1 + health_score_));
  if (!relays_to_nack_.empty())
    next = std::min(next, relays_.at(relays_to_nack_.front()).started_at + options_.nack_after);
  if (!suspicions_.empty()) next = std::min(next, suspicions_.begin()->first);
  if (!dead_by_time_.empty())
    next = std::min(next, dead_by_time_.begin()->first + options_.forget_dead_after);
  return next;
}

// --- probes -------------------------------------------------------------------------------------

void Membership::probe(const MembershipContext& context) {
  if (now_ < probe_at_) return;
  probe_at_ = now_ + options_.probe_interval * (1 + health_score_);
  const NodeEntry* target = nodes_.next(context.random);
  // Pings, but does not probe, nodes that this node suspects: a failed probe would be no news.
  const std::size_t others = std::max(nodes_.live().size(), std::size_t{1}) - 1;
  for (std::size_t pings = std::min(others, pinged_suspects_max);
       pings > 0 && is_suspected_by_self(*target); --pings) {
    ping(context, *target);
    target = nodes_.next(context.random);
  }
  if (target == nullptr) return;
  ++counts_.probes;
  probe_ = Probe{target->record.id, ++sequence_, now_};
  send(context, target->record.address, probe_->target, Ping{probe_->target, sequence_});
}

void Membership::probe_indirectly(const MembershipContext& context) {
  if (!probe_ || probe_->is_indirect) return;
  if (now_ < probe_->started_at + options_.probe_timeout * (1 + health_score_)) return;
  probe_->is_indirect = true;
  const auto helpers =
      nodes_.draw_live(context.random, options_.probe_helpers, [&](const NodeEntry& entry) {
        return entry.record.state == NodeState::alive && entry.record.id != probe_->target;
      });
  for (const NodeEntry* helper : helpers) {
    probe_->helpers.push_back(helper->record.id);
    send(context, helper->record.address, helper->record.id,
         PingRequest{probe_->target, probe_->sequence});
  }
}

void Membership::end_probe(const MembershipContext& context) {
  if (!probe_ || now_ < probe_at_) return;
  const Probe failed = *std::exchange(probe_, std::nullopt);
  const NodeEntry* target = nodes_.find(failed.target);
  if (target == nullptr || !is_live(target->record.state)) return;
  ++counts_.probes_failed;
  // If most helpers have not answered either, this node itself may be partitioned or slow.
  const bool helpers_answered = failed.nacks > 0 && 2 * failed.nacks >= failed.helpers.size();
  if (!helpers_answered && target->record.state == NodeState::alive) raise_health_score(1);
  suspect(context, failed.target);
  ping(context, *target);
}

/// Pings a node without expecting an answer. If this node's record says that it is not alive, the
/// message carries that record, so that the node can refute it.
void Membership::ping(const MembershipContext& context, const NodeEntry& entry) {
  send(context, entry.record.address, entry.record.id, Ping{entry.record.id, 0});
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Ping& ping) {
  if (ping.to == self_.id) send(context, from.address, from.id, PingAck{ping.sequence});
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const PingAck& ack) {
  if (probe_ && ack.sequence == probe_->sequence) {
    if (from.id == probe_->target || probe_->has_helper(from.id)) {
      NodeEntry* target = nodes_.find(probe_->target);
      if (target != nullptr && from.id != probe_->target) ++target->relayed_probes;
      probe_.reset();
      if (health_score_ > 0) --health_score_;
    }
    return;
  }
  const auto relay = relays_.find(ack.sequence);
  if (relay == relays_.end() || relay->second.target != from.id) return;
  if (const NodeEntry* requester = nodes_.find(relay->second.requester))
    send(context, requester->record.address, requester->record.id, PingAck{relay->second.sequence});
  std::erase(relays_to_nack_, relay->first);
  relays_.erase(relay);
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const PingRequest& asked) {
  if (asked.target == self_.id)
    return send(context, from.address, from.id, PingAck{asked.sequence});
  const NodeEntry* target = nodes_.find(asked.target);
  if (target == nullptr || relays_.size() >= relays_max)
    return send(context, from.address, from.id, PingNack{asked.sequence});
  relays_.emplace(++sequence_, Relay{asked.target, from.id, asked.sequence, now_});
  relays_to_nack_.push_back(sequence_);
  send(context, target->record.address, asked.target, Ping{asked.target, sequence_});
}

void Membership::receive(const MembershipContext&, const NodeRecord& from, const PingNack& nack) {
  if (probe_ && nack.sequence == probe_->sequence && probe_->has_helper(from.id)) ++probe_->nacks;
}

void Membership::send_nacks(const MembershipContext& context) {
  while (!relays_to_nack_.empty()) {
    const Relay& relay = relays_.at(relays_to_nack_.front());
    if (now_ < relay.started_at + options_.nack_after) break;
    relays_to_nack_.pop_front();
    if (const NodeEntry* requester = nodes_.find(relay.requester))
      send(context, requester->record.address, requester->record.id, PingNack{relay.sequence});
  }
  // Keeps a relay as long as its requester may wait for the answer.
  const Time probe_interval_max = options_.probe_interval * (1 + options_.health_score_max);
  while (!relays_.empty() && relays_.begin()->second.started_at + probe_interval_max <= now_)
    relays_.erase(relays_.begin());
}

/// Pings a random dead node, which may only have been in a partition. The probability is such that
/// all live nodes together ping each dead node once in `ping_dead_every`, on average.
void Membership::ping_dead(const MembershipContext& context) {
  if (now_ < ping_dead_at_) return;
  ping_dead_at_ = now_ + options_.ping_dead_every;
  const auto& dead = nodes_.dead();
  if (dead.empty() || context.random.below(nodes_.live().size() + 1) >= dead.size()) return;
  ping(context, *nodes_.find(dead[context.random.below(dead.size())]));
}

// --- news ---------------------------------------------------------------------------------------

void Membership::send(const MembershipContext& context, const std::string& address, NodeId to,
                      MembershipMessage::Body body) {
  MembershipMessage message{self_, std::move(body)};
  attach_news(message, to);
  context.out.push_back(MembershipSend{address, std::move(message)});
}

/// Adds news to a message to node `to`. The receiver's own record comes first, if it says that the
/// receiver is not alive: the receiver has to refute it.
void Membership::attach_news(MembershipMessage& message, NodeId to) {
  std::size_t bytes = wire_size(message);
  const auto add = [&](const NodeEntry& entry) {
    NodeUpdate update{entry.record, entry.reported_by};
    bytes += wire_size(update);
    if (bytes > options_.message_bytes) return false;
    message.updates.push_back(std::move(update));
    return true;
  };
  const NodeEntry* receiver = nodes_.find(to);
  if (receiver != nullptr && receiver->record.state != NodeState::alive) add(*receiver);
  const double nodes = static_cast<double>(nodes_.live().size()) + 2;
  const auto limit = static_cast<unsigned>(std::ceil(options_.gossip_repeats * std::log2(nodes)));
  news_.take(updates_max, limit, [&](NodeId id) {
    // Leaves out this node, whose record is in each message anyway, and the receiver itself.
    const NodeEntry* entry = id == to ? nullptr : nodes_.find(id);
    return entry == nullptr || add(*entry);
  });
}

void Membership::send_gossip(const MembershipContext& context) {
  if (news_.empty() || now_ < gossip_at_) return;
  gossip_at_ = now_ + options_.gossip_every;
  const auto receivers = nodes_.draw_live(context.random, options_.gossip_to);
  for (const NodeEntry* receiver : receivers)
    if (!news_.empty()) send(context, receiver->record.address, receiver->record.id, Gossip{});
  const bool has_left = self_.state == NodeState::left;
  if (receivers.empty()) {
    news_ = {};  // a node that joins later asks for all records
    // A seed node may know this node although the seed node's answer has not arrived.
    if (has_left)
      for (const std::string& seed : options_.seeds) send(context, seed, 0, Gossip{});
  }
  if (has_left && news_.empty()) context.out.push_back(HasLeft{});
}

// --- joining and comparing ----------------------------------------------------------------------

/// Sends a digest to the next seed node.
void Membership::ask_next_seed(const MembershipContext& context) {
  seed_position_ = (seed_position_ + 1) % options_.seeds.size();
  send(context, options_.seeds[seed_position_], 0, Digest{.buckets = own_digest()});
}

void Membership::join(const MembershipContext& context) {
  if (now_ < join_at_) return;
  join_at_ = now_ + options_.join_retry;
  ask_next_seed(context);
}

void Membership::sync(const MembershipContext& context) {
  if (now_ < sync_at_) return;
  sync_interval_ = std::min(2 * sync_interval_, options_.sync_interval);
  const auto mean = static_cast<std::uint64_t>(sync_interval_.count());
  sync_at_ = now_ + Time{static_cast<Time::rep>(mean / 2 + context.random.below(mean + 1))};
  const auto other = nodes_.draw_live(context.random, 1);
  // A seed node may know nodes that this node has forgotten in a long partition. In a large cluster
  // about ten nodes ask a seed node in each sync interval.
  const bool asks_seed = other.empty() || context.random.below(10 + nodes_.live().size() / 10) == 0;
  if (asks_seed && has_joined_ && !options_.seeds.empty()) return ask_next_seed(context);
  if (!other.empty()) sync_with(context, other.front()->record);
}

void Membership::sync_with(const MembershipContext& context, const NodeRecord& node) {
  if (now_ < next_sync_with_at_) return;
  next_sync_with_at_ = now_ + options_.gossip_every;
  send(context, node.address, node.id, Digest{.buckets = own_digest()});
}

/// Returns the number of buckets of own_digest(): a power of two such that a bucket has about eight
/// nodes.
std::size_t Membership::bucket_count() const {
  return std::min(std::bit_ceil(nodes_.live().size() / 8 + 1), NodeDigest::buckets_max);
}

/// Returns the checksums of this node and the live nodes that it knows.
std::vector<std::uint64_t> Membership::own_digest() const {
  NodeDigest digest = nodes_.digest();
  digest.toggle(self_);
  return digest.folded(bucket_count());
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Digest& digest) {
  const std::size_t count = digest.buckets.size();
  if (!std::has_single_bit(count) || count > NodeDigest::buckets_max) return;
  if (digest.answer && !std::exchange(has_joined_, true)) {
    join_at_ = never;
    sync_interval_ = options_.sync_first;
    sync_at_ = now_ + sync_interval_;
    context.out.push_back(HasJoined{});
  }
  send_records(context, from, digest.buckets);
  // The digest is sent after the records, so that the other side does not send them back.
  if (!digest.answer)
    send(context, from.address, from.id, Digest{.buckets = own_digest(), .answer = true});
}

/// Sends the records of all buckets whose sums differ from `theirs`, in one or more messages.
void Membership::send_records(const MembershipContext& context, const NodeRecord& to,
                              const std::vector<std::uint64_t>& theirs) {
  NodeDigest digest = nodes_.digest();
  digest.toggle(self_);
  const std::vector<std::uint64_t> ours = digest.folded(theirs.size());
  MembershipMessage page{self_, Records{}};
  const std::size_t empty_bytes = wire_size(page);
  std::size_t bytes = empty_bytes;
  const auto send_page = [&] {
    MembershipMessage full = std::exchange(page, {self_, Records{}});
    bytes = empty_bytes;
    context.out.push_back(MembershipSend{to.address, std::move(full)});
  };
  for (std::size_t bucket = 0; bucket < ours.size(); ++bucket) {
    if (ours[bucket] == theirs[bucket]) continue;
    nodes_.for_each_in_bucket(bucket, ours.size(), [&](const NodeRecord& record) {
      const std::size_t record_bytes = wire_size(record);
      if (bytes > empty_bytes && bytes + record_bytes > options_.records_bytes) send_page();
      bytes += record_bytes;
      std::get<Records>(page.body).records.push_back(record);
    });
  }
  if (bytes > empty_bytes) send_page();
}

void Membership::receive(const MembershipContext& context, const NodeRecord& from,
                         const Records& page) {
  const std::size_t count = std::min(page.records.size(), records_max);
  for (std::size_t i = 0; i < count; ++i) learn(context, {page.records[i], from.id}, Source::sync);
}

}  // namespace starling::core
