// Decides which of several members with one name stays.
#include <algorithm>

#include "starling/engine/core/membership/membership.hpp"

namespace starling::core {
namespace {

/// True where `one` stays, of two members with one name. Ids are random, and all decide alike.
bool stays(const NodeRecord& one, const NodeRecord& other) { return one.id < other.id; }

}  // namespace

bool Membership::may_join(const MembershipContext& context, const NodeRecord& from) {
  if (from.name.empty() || from.state == NodeState::left || members_.find(from.id) != nullptr)
    return true;
  const bool is_own = from.name == self_.name && from.address != self_.address && joined_;
  const MemberEntry* rival = is_own ? nullptr : members_.find_named(from.name, from.id);
  if (!is_own && (rival == nullptr || rival->record.address == from.address)) {
    join_attempts_.erase(from.id);
    return true;
  }
  if (join_attempts_.size() >= join_attempts_max && !join_attempts_.contains(from.id))
    join_attempts_.erase(std::ranges::min_element(
        join_attempts_, {}, [](const auto& attempt) { return attempt.second.since; }));
  JoinAttempt& attempt = join_attempts_.try_emplace(from.id, JoinAttempt{now_}).first->second;
  if (!is_own && rival->heard < attempt.since + name_doubt) {
    ping(context, *rival);  // so that it shows that it lives
    return false;
  }
  const NodeRecord holder = is_own ? self_ : rival->record;
  if (!std::exchange(attempt.is_refused, true)) context.out.push_back(MemberRefused{from, holder});
  send(context, from.address, from.id, NameTaken{from.id, holder});
  return false;
}

void Membership::settle_name(const MembershipContext& context, const NodeRecord& from) {
  MemberEntry* known = members_.find(from.id);
  if (known == nullptr || !is_live(known->record.state) || from.name.empty()) return;
  known->heard = now_;
  if (joined_ && from.name == self_.name && from.address != self_.address && stays(self_, from))
    return refuse(context, from, self_);
  const MemberEntry* rival = members_.find_named(from.name, from.id);
  if (rival == nullptr) return;
  const NodeRecord other = rival->record;
  if (other.address == from.address)
    bury(context, other.id);  // a former process at the same address
  else if (stays(from, other))
    refuse(context, other, from);
  else if (rival->heard + name_doubt < now_)
    ping(context, *rival);
}

/// Removes `member`, which was admitted with the name that `holder` has.
void Membership::refuse(const MembershipContext& context, const NodeRecord& member,
                        const NodeRecord& holder) {
  context.out.push_back(MemberRefused{member, holder});
  send(context, member.address, member.id, NameTaken{member.id, holder});
  bury(context, member.id);
}

void Membership::bury(const MembershipContext& context, NodeId id) {
  MemberEntry& entry = *members_.find(id);
  NodeRecord dead = entry.record;
  dead.state = NodeState::dead;
  adopt(context, entry, std::move(dead), self_.id);
}

void Membership::receive(const MembershipContext& context, const NodeRecord&,
                         const NameTaken& taken) {
  const NodeRecord& holder = taken.holder;
  if (taken.to != self_.id || !is_sane(holder) || holder.name != self_.name ||
      holder.id == self_.id)
    return;
  if (!joined_ || stays(holder, self_))
    context.out.push_back(NameRefused{holder});
  else
    send(context, holder.address, holder.id, NameTaken{holder.id, self_});
}

}  // namespace starling::core
