/// How a node executes the effects of its Membership object: it sends messages, sets timers, and
/// reacts when other nodes join, leave, die or are refused, and when it must leave itself. Also
/// handles revoked certificates.
#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

void ClusterNode::Impl::execute(core::MembershipSend& send) {
  this->send(send.address, std::move(send.message), wire::TrafficClass::control);
}

void ClusterNode::Impl::execute(const core::SetTimer& timer) {
  loop_.post_after(timer.at - now(), [this] {
    run_membership([](core::Membership& m, const auto& c) { m.on_timer(c); });
  });
}

void ClusterNode::Impl::execute(const core::NodeChanged& changed) {
  const core::NodeRecord& record = changed.record;
  // Goes on only if the node is new, or has changed between live and not live.
  if (!nodes_.update(record, now())) return;
  const char* change = core::is_live(record.state)             ? " is here"
                       : record.state == core::NodeState::left ? " has left"
                       : revoked_.contains(record.id)          ? " is revoked, and gone"
                                                               : " is dead";
  log("node " + record.name + " at " + wire::without_key(record.address) + change);
  if (!core::is_live(record.state) && !nodes_.is_address_in_use(record.address))
    endpoint_->forget(record.address);
  // The second sweep is for is_gone(), which is false for a dead node until this time has passed.
  if (record.state == core::NodeState::dead)
    loop_.post_after(NodeTable::death_believed_after, [this] { sweep_jobs(); });
  sweep_jobs();
}

void ClusterNode::Impl::execute(const core::MustLeave& order) {
  const std::unique_lock lock{state_mutex_};
  if (!refusal_.empty()) return;
  refusal_ = "refused: a node called " + name_ + " is there already, at " +
             wire::without_key(order.holder.address) +
             "; each node needs a name of its own and, if keys are used, a key file of its own";
}

void ClusterNode::Impl::execute(const core::NodeRefused& refused) {
  // Membership may report the same node several times. The log names it once.
  if (!name_conflicts_.insert(refused.record.id).second) return;
  if (name_conflicts_.size() > name_conflicts_max) name_conflicts_ = {refused.record.id};
  log("node " + refused.record.name + " at " + wire::without_key(refused.record.address) +
      " is refused: a node of that name is there already, at " +
      wire::without_key(refused.holder.address));
}

void ClusterNode::Impl::on_revoked(const security::MergeResult& merged) {
  for (const security::Revocation& revocation : merged.added)
    log("certificate " + security::print_serial(revocation.serial) + " is revoked");
  // A node's address contains its public key, if keys are used.
  for (const auto& node : nodes_.all()) {
    const auto peer = wire::parse_peer(node.address);
    if (!peer || !peer->key || std::ranges::count(merged.removed_keys, *peer->key) == 0) continue;
    revoked_.insert(node.id);
    // Logs no dead node: a live node with another key may have its name, host and port now.
    if (!core::is_live(node.state)) continue;
    log("node " + node.name + " at " + wire::without_key(node.address) +
        " is revoked: its messages are refused now");
  }
  if (options_.on_revoked) options_.on_revoked(merged.added);
}

void ClusterNode::Impl::log_isolation() {
  if (membership_->joined() || now() < isolation_logged_at_ + isolation_log_period) return;
  isolation_logged_at_ = now();
  const std::vector<std::string>& seeds = membership_->seeds();
  if (seeds.empty()) return;
  log("no answer from " + wire::without_key(seeds.front()) +
      (seeds.size() > 1 ? " and the other seed nodes" : "") +
      " yet: this node runs alone, and keeps asking");
}

std::vector<core::NodeRecord> ClusterNode::Impl::live_nodes() const {
  std::vector<core::NodeRecord> all = nodes_.live();
  all.insert(all.begin(), membership_->self());
  return all;
}

}  // namespace starling::actor
