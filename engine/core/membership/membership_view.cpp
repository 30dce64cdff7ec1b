// Updates a node's records of other nodes from the news that it receives.
#include <algorithm>
#include <cmath>
#include <limits>

#include "starling/engine/core/membership/membership.hpp"

namespace starling::core {

bool Membership::is_valid(const NodeRecord& record) const {
  return record.id != 0 && !record.address.empty() && record.address.size() <= options_.text_max &&
         record.name.size() <= options_.text_max && record.workers <= options_.workers_max &&
         record.state <= NodeState::left;
}

void Membership::learn(const MembershipContext& context, const NodeUpdate& update, Source source) {
  if (!is_valid(update.record)) return;
  NodeRecord record = update.record;
  if (record.id == self_.id) return learn_of_self(record);
  NodeEntry* known = nodes_.find(record.id);
  bool is_former_process = false;
  if (known == nullptr) {
    known = add_node(context, record);
    if (known == nullptr) return;
    // A record with this node's own address describes a former process at that address.
    is_former_process = record.address == self_.address;
    if (is_former_process) record.state = NodeState::dead;
  }
  const NodeRecord& before = known->record;
  // A process keeps its address. An address has the node's public key, if there are keys, so nobody
  // else may replace it: packets from there would count as those of the node.
  if (record.address != before.address) return;
  if (record.incarnation < before.incarnation ||
      record.incarnation - before.incarnation > incarnation_jump_max)
    return;
  // During a partition each side declares the other's nodes dead. When it is healed, a record from
  // anti-entropy that says `dead` only makes the node a suspect, so that the node can refute it.
  if (source == Source::sync && record.state == NodeState::dead && !is_former_process &&
      is_live(before.state))
    record.state = NodeState::suspect;
  if (record.incarnation > before.incarnation || record.state > before.state)
    update_record(context, *known, std::move(record), update.reported_by);
  else if (record.state == NodeState::suspect && before.state == NodeState::suspect)
    confirm_suspicion(*known, update.reported_by);
}

/// Adds a node that was not known, as alive. Adds nothing and returns nullptr if `record` says that
/// the node is not live, if its incarnation is too high, or if the list is full.
NodeEntry* Membership::add_node(const MembershipContext& context, const NodeRecord& record) {
  if (!is_live(record.state) || record.incarnation > incarnation_jump_max) return nullptr;
  if (nodes_.size() >= options_.nodes_max) {
    if (dead_by_time_.empty()) return nullptr;
    forget(dead_by_time_.begin()->second);
  }
  NodeEntry& entry = nodes_.insert(record);
  NodeRecord alive = record;
  alive.state = NodeState::alive;
  nodes_.update(entry, std::move(alive));
  // While this node joins, a seed node sends it nodes that all others know already: no news.
  if (has_joined_) queue_news(record.id);
  context.out.push_back(NodeChanged{entry.record});
  return &entry;
}

/// Handles a record of this node that another node has sent: refutes it if it is not up to date.
void Membership::learn_of_self(const NodeRecord& record) {
  if (self_.state == NodeState::left || record == self_) return;
  if (record.incarnation < self_.incarnation ||
      record.incarnation - self_.incarnation > incarnation_jump_max)
    return;
  ++counts_.refutations;
  if (record.state != NodeState::alive) raise_health_score(1);
  raise_incarnation(record.incarnation);
}

/// Raises this node's incarnation above `above`, and queues its record as news.
void Membership::raise_incarnation(std::uint64_t above) {
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  self_.incarnation = above == last ? last : above + 1;
  queue_news(self_.id);
}

void Membership::update_record(const MembershipContext& context, NodeEntry& entry,
                               NodeRecord record, NodeId by) {
  const NodeRecord before = entry.record;
  const auto confirmations_needed = [&] {
    return std::min(options_.confirmations, possible_confirmers());
  };
  const std::size_t needed_before = confirmations_needed();
  if (record.incarnation == before.incarnation) {
    // Only the node itself changes its name and workers, and with a new incarnation.
    const NodeState state = record.state;
    record = before;
    record.state = state;
  }
  if (before.state == NodeState::suspect) suspicions_.erase({entry.deadline, before.id});
  if (!is_live(before.state)) dead_by_time_.erase({entry.state_changed_at, before.id});
  entry.state_changed_at = now_;
  entry.reported_by = by;
  entry.suspected_by.clear();
  nodes_.update(entry, std::move(record));
  if (entry.record.state == NodeState::suspect) {
    entry.suspected_by.push_back(by);
    suspicions_.insert({entry.deadline, before.id});
    set_deadline(entry);
  } else if (!is_live(entry.record.state)) {
    dead_by_time_.insert({entry.state_changed_at, before.id});
  }
  if (confirmations_needed() != needed_before)
    for (const auto& [deadline, id] : std::set{suspicions_}) set_deadline(*nodes_.find(id));
  queue_news(before.id);
  // If only the incarnation has changed, there is no effect.
  NodeRecord compared = entry.record;
  compared.incarnation = before.incarnation;
  if (compared != before) context.out.push_back(NodeChanged{entry.record});
}

void Membership::confirm_suspicion(NodeEntry& entry, NodeId by) {
  if (entry.suspected_by.size() > options_.confirmations ||
      std::ranges::find(entry.suspected_by, by) != entry.suspected_by.end())
    return;
  entry.suspected_by.push_back(by);
  entry.reported_by = by;
  set_deadline(entry);
  queue_news(entry.record.id);
}

void Membership::set_deadline(NodeEntry& suspect) {
  const Time deadline = std::max(now_, suspect.state_changed_at + suspicion_time(suspect));
  suspicions_.erase({suspect.deadline, suspect.record.id});
  suspect.deadline = deadline;
  suspicions_.insert({suspect.deadline, suspect.record.id});
}

bool Membership::is_suspected_by_self(const NodeEntry& entry) const {
  return std::ranges::find(entry.suspected_by, self_.id) != entry.suspected_by.end();
}

/// Returns how many other nodes could confirm a suspicion: those that are not suspected, but at
/// least half of all others. Suspects do not count, because two nodes that die at the same time
/// cannot confirm each other's death. Half of the others always count, because a node that suspects
/// more of them may itself be partitioned.
std::size_t Membership::possible_confirmers() const {
  const std::size_t others = nodes_.live().size();
  return std::max(others - suspicions_.size(), others / 2);
}

/// Returns how long a suspicion lasts, by Lifeguard's formula: the time falls with the logarithm of
/// the number of confirmations, from the longest to the shortest. It is multiplied by
/// 1 + health_score().
Time Membership::suspicion_time(const NodeEntry& entry) const {
  const auto nodes = static_cast<double>(nodes_.live().size() + 1);
  const double shortest = options_.suspicion_intervals * std::max(1.0, std::log10(nodes)) *
                          static_cast<double>(options_.probe_interval.count()) *
                          (1 + health_score_);
  const double longest = options_.suspicion_max * shortest;
  const auto needed = static_cast<double>(std::min(options_.confirmations, possible_confirmers()));
  double wait = shortest;
  if (needed >= 1) {
    const auto confirmed = static_cast<double>(entry.suspected_by.size() - 1);
    wait = std::max(
        shortest, longest - (longest - shortest) * std::log(confirmed + 1) / std::log(needed + 1));
  }
  return Time{static_cast<Time::rep>(wait)};
}

void Membership::suspect(const MembershipContext& context, NodeId id) {
  NodeUpdate update{nodes_.find(id)->record, self_.id};
  if (update.record.state == NodeState::alive) ++counts_.suspicions;
  update.record.state = NodeState::suspect;
  learn(context, update, Source::gossip);
}

void Membership::expire_suspicions(const MembershipContext& context) {
  while (!suspicions_.empty() && suspicions_.begin()->first <= now_) {
    NodeEntry& entry = *nodes_.find(suspicions_.begin()->second);
    // The deadline moves if health_score() has changed in the meantime.
    set_deadline(entry);
    if (entry.deadline > now_) continue;
    ++counts_.deaths;
    NodeRecord record = entry.record;
    record.state = NodeState::dead;
    update_record(context, entry, std::move(record), self_.id);
  }
}

void Membership::forget(NodeId id) {
  dead_by_time_.erase({nodes_.find(id)->state_changed_at, id});
  news_.remove(id);
  nodes_.erase(id);
}

/// Forgets the nodes that have been dead, or have left, for longer than `forget_dead_after`.
void Membership::forget_old() {
  while (!dead_by_time_.empty() &&
         dead_by_time_.begin()->first + options_.forget_dead_after <= now_)
    forget(dead_by_time_.begin()->second);
}

void Membership::queue_news(NodeId id) {
  if (news_.empty()) gossip_at_ = std::max(gossip_at_, now_);
  news_.put(id);
}

void Membership::raise_health_score(unsigned by) {
  health_score_ = std::min(health_score_ + by, options_.health_score_max);
}

}  // namespace starling::core
