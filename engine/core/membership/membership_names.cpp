// Decides which node stays if several nodes have the same name.
#include <algorithm>

#include "starling/engine/core/membership/membership.hpp"

namespace starling::core {
namespace {

/// Returns true if `node` stays and `other`, which has the same name, must leave. All nodes decide
/// alike, because they compare only the ids.
bool has_precedence(const NodeRecord& node, const NodeRecord& other) { return node.id < other.id; }

}  // namespace

bool Membership::may_join(const MembershipContext& context, const NodeRecord& from) {
  if (from.name.empty() || from.state == NodeState::left || nodes_.find(from.id) != nullptr)
    return true;
  const bool has_own_name = from.name == self_.name && from.address != self_.address && has_joined_;
  const NodeEntry* rival = has_own_name ? nullptr : nodes_.find_named(from.name, from.id);
  if (!has_own_name && (rival == nullptr || rival->record.address == from.address)) {
    join_attempts_.erase(from.id);
    return true;
  }
  if (join_attempts_.size() >= join_attempts_max && !join_attempts_.contains(from.id))
    join_attempts_.erase(std::ranges::min_element(
        join_attempts_, {}, [](const auto& attempt) { return attempt.second.first_at; }));
  JoinAttempt& attempt = join_attempts_.try_emplace(from.id, JoinAttempt{now_}).first->second;
  if (!has_own_name && rival->received_at < attempt.first_at + message_delay_max) {
    ping(context, *rival);  // its answer will show that it lives
    return false;
  }
  const NodeRecord holder = has_own_name ? self_ : rival->record;
  if (!std::exchange(attempt.is_refused, true)) context.out.push_back(NodeRefused{from, holder});
  send(context, from.address, from.id, NameTaken{from.id, holder});
  return false;
}

void Membership::resolve_name_conflict(const MembershipContext& context, const NodeRecord& from) {
  NodeEntry* known = nodes_.find(from.id);
  if (known == nullptr || !is_live(known->record.state) || from.name.empty()) return;
  known->received_at = now_;
  if (has_joined_ && from.name == self_.name && from.address != self_.address &&
      has_precedence(self_, from))
    return refuse(context, from, self_);
  const NodeEntry* rival = nodes_.find_named(from.name, from.id);
  if (rival == nullptr) return;
  const NodeRecord other = rival->record;
  if (other.address == from.address)
    declare_dead(context, other.id);  // a former process at the same address
  else if (has_precedence(from, other))
    refuse(context, other, from);
  else if (rival->received_at + message_delay_max < now_)
    ping(context, *rival);
}

/// Sends `node`, which has joined with the name of `holder`, NameTaken, and declares it dead.
void Membership::refuse(const MembershipContext& context, const NodeRecord& node,
                        const NodeRecord& holder) {
  context.out.push_back(NodeRefused{node, holder});
  send(context, node.address, node.id, NameTaken{node.id, holder});
  declare_dead(context, node.id);
}

void Membership::declare_dead(const MembershipContext& context, NodeId id) {
  NodeEntry& entry = *nodes_.find(id);
  NodeRecord dead = entry.record;
  dead.state = NodeState::dead;
  update_record(context, entry, std::move(dead), self_.id);
}

void Membership::receive(const MembershipContext& context, const NodeRecord&,
                         const NameTaken& taken) {
  const NodeRecord& holder = taken.holder;
  if (taken.to != self_.id || !is_valid(holder) || holder.name != self_.name ||
      holder.id == self_.id)
    return;
  if (!has_joined_ || has_precedence(holder, self_))
    context.out.push_back(MustLeave{holder});
  else
    send(context, holder.address, holder.id, NameTaken{holder.id, self_});
}

}  // namespace starling::core
