// The records that a member has of others, and how it updates them by what it receives.
#include <algorithm>
#include <cmath>
#include <limits>

#include "starling/engine/core/membership/membership.hpp"

namespace starling::core {

bool Membership::is_sane(const NodeRecord& record) const {
  return record.id != 0 && !record.address.empty() && record.address.size() <= options_.text_max &&
         record.name.size() <= options_.text_max && record.workers <= options_.workers_max &&
         record.state <= NodeState::left;
}

void Membership::learn(const MembershipContext& context, const NodeUpdate& update, Source source) {
  if (!is_sane(update.record)) return;
  NodeRecord record = update.record;
  if (record.id == self_.id) return learn_of_self(record);
  MemberEntry* known = members_.find(record.id);
  bool replaced = false;
  if (known == nullptr) {
    known = admit(context, record);
    if (known == nullptr) return;
    // This address is this member's own: the record is of a former process here.
    replaced = record.address == self_.address;
    if (replaced) record.state = NodeState::dead;
  }
  const NodeRecord& before = known->record;
  if (record.incarnation < before.incarnation ||
      record.incarnation - before.incarnation > incarnation_jump_max)
    return;
  // Each side of a partition has declared the other dead. A member may still refute that.
  if (source == Source::sync && record.state == NodeState::dead && !replaced &&
      is_live(before.state))
    record.state = NodeState::suspect;
  if (record.incarnation > before.incarnation || record.state > before.state)
    adopt(context, *known, std::move(record), update.by);
  else if (record.state == NodeState::suspect && before.state == NodeState::suspect)
    confirm(*known, update.by);
}

/// Adds a member that was not known; returns nullptr where it is not live, its incarnation is too
/// high, or there is no capacity.
MemberEntry* Membership::admit(const MembershipContext& context, const NodeRecord& record) {
  if (!is_live(record.state) || record.incarnation > incarnation_jump_max) return nullptr;
  if (members_.size() >= options_.members_max) {
    if (graves_.empty()) return nullptr;
    forget(graves_.begin()->second);
  }
  MemberEntry& entry = members_.insert(record);
  NodeRecord alive = record;
  alive.state = NodeState::alive;
  members_.update(entry, std::move(alive));
  // The others know already the members that a seed node sends to a new one.
  if (joined_) spread(record.id);
  context.out.push_back(MemberChanged{entry.record});
  return &entry;
}

void Membership::learn_of_self(const NodeRecord& record) {
  if (self_.state == NodeState::left || record == self_) return;
  if (record.incarnation < self_.incarnation ||
      record.incarnation - self_.incarnation > incarnation_jump_max)
    return;
  ++counts_.refutations;
  if (record.state != NodeState::alive) ail(1);
  renew(record.incarnation);
}

/// Raises this member's incarnation above `above`, and spreads its record.
void Membership::renew(std::uint64_t above) {
  constexpr auto last = std::numeric_limits<std::uint64_t>::max();
  self_.incarnation = above == last ? last : above + 1;
  spread(self_.id);
}

void Membership::adopt(const MembershipContext& context, MemberEntry& entry, NodeRecord record,
                       NodeId by) {
  const NodeRecord before = entry.record;
  const auto needed = [&] { return std::min(options_.confirmations, confirmers()); };
  const std::size_t needed_before = needed();
  if (record.incarnation == before.incarnation) {
    // Only the member itself changes its facts, and with a new incarnation.
    const NodeState state = record.state;
    record = before;
    record.state = state;
  }
  if (before.state == NodeState::suspect) suspicions_.erase({entry.deadline, before.id});
  if (!is_live(before.state)) graves_.erase({entry.since, before.id});
  entry.since = now_;
  entry.by = by;
  entry.accusers.clear();
  members_.update(entry, std::move(record));
  if (entry.record.state == NodeState::suspect) {
    entry.accusers.push_back(by);
    suspicions_.insert({entry.deadline, before.id});
    set_deadline(entry);
  } else if (!is_live(entry.record.state)) {
    graves_.insert({entry.since, before.id});
  }
  if (needed() != needed_before)
    for (const auto& [deadline, id] : std::set{suspicions_}) set_deadline(*members_.find(id));
  spread(before.id);
  // A new incarnation alone is not worth an effect.
  NodeRecord same = entry.record;
  same.incarnation = before.incarnation;
  if (same != before) context.out.push_back(MemberChanged{entry.record});
}

void Membership::confirm(MemberEntry& entry, NodeId by) {
  if (entry.accusers.size() > options_.confirmations ||
      std::ranges::find(entry.accusers, by) != entry.accusers.end())
    return;
  entry.accusers.push_back(by);
  entry.by = by;
  set_deadline(entry);
  spread(entry.record.id);
}

void Membership::set_deadline(MemberEntry& suspect) {
  const Time deadline = std::max(now_, suspect.since + patience(suspect));
  suspicions_.erase({suspect.deadline, suspect.record.id});
  suspect.deadline = deadline;
  suspicions_.insert({suspect.deadline, suspect.record.id});
}

bool Membership::accused(const MemberEntry& entry) const {
  return std::ranges::find(entry.accusers, self_.id) != entry.accusers.end();
}

/// Returns how many others could confirm a suspicion: those that are not suspected themselves, for
/// of two that die at once neither confirms the death of the other. At least half of all others
/// count: a member that suspects more than half may itself be partitioned.
std::size_t Membership::confirmers() const {
  const std::size_t others = members_.live().size();
  return std::max(others - suspicions_.size(), others / 2);
}

/// Returns how long a suspicion lasts: Lifeguard's logarithm between the longest time, where no
/// other member suspects, and the shortest; a member that doubts its own health waits longer.
Time Membership::patience(const MemberEntry& entry) const {
  const auto members = static_cast<double>(members_.live().size() + 1);
  const double least = options_.suspicion_intervals * std::max(1.0, std::log10(members)) *
                       static_cast<double>(options_.probe_every.count()) * (1 + health_);
  const double most = options_.suspicion_max * least;
  const auto could = static_cast<double>(std::min(options_.confirmations, confirmers()));
  double wait = least;
  if (could >= 1) {
    const auto have = static_cast<double>(entry.accusers.size() - 1);
    wait = std::max(least, most - (most - least) * std::log(have + 1) / std::log(could + 1));
  }
  return Time{static_cast<Time::rep>(wait)};
}

void Membership::suspect(const MembershipContext& context, NodeId id) {
  NodeUpdate update{members_.find(id)->record, self_.id};
  if (update.record.state == NodeState::alive) ++counts_.suspicions;
  update.record.state = NodeState::suspect;
  learn(context, update, Source::gossip);
}

void Membership::judge(const MembershipContext& context) {
  while (!suspicions_.empty() && suspicions_.begin()->first <= now_) {
    MemberEntry& entry = *members_.find(suspicions_.begin()->second);
    // Meanwhile this member may have come to doubt its own health.
    set_deadline(entry);
    if (entry.deadline > now_) continue;
    ++counts_.deaths;
    NodeRecord record = entry.record;
    record.state = NodeState::dead;
    adopt(context, entry, std::move(record), self_.id);
  }
}

void Membership::forget(NodeId id) {
  graves_.erase({members_.find(id)->since, id});
  news_.remove(id);
  members_.erase(id);
}

void Membership::forget_old() {
  while (!graves_.empty() && graves_.begin()->first + options_.dead_for <= now_)
    forget(graves_.begin()->second);
}

void Membership::spread(NodeId id) {
  if (news_.empty()) gossip_at_ = std::max(gossip_at_, now_);
  news_.put(id);
}

void Membership::ail(unsigned by) { health_ = std::min(health_ + by, options_.health_max); }

}  // namespace starling::core
