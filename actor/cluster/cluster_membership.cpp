/// How a node follows which other nodes come, leave, die, or are revoked or refused.
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

void ClusterNode::Impl::execute(const core::MemberChanged& changed) {
  const core::NodeRecord& record = changed.record;
  if (!nodes_.note(record, now())) return;
  const char* what = core::is_live(record.state)             ? " is here"
                     : record.state == core::NodeState::left ? " has left"
                     : revoked_.contains(record.id)          ? " is revoked, and gone"
                                                             : " is dead";
  log("node " + record.name + " at " + wire::place_of(record.address) + what);
  if (!core::is_live(record.state) && !nodes_.is_in_use(record.address))
    endpoint_->forget(record.address);
  if (record.state == core::NodeState::dead)
    loop_.post_after(NodeTable::believe_after, [this] { sweep_jobs(); });
  sweep_jobs();
}

void ClusterNode::Impl::execute(const core::NameRefused& refused) {
  const std::unique_lock lock{jobs_mutex_};
  if (!refusal_.empty()) return;
  refusal_ = "refused: a node called " + name_ + " is there already, at " +
             wire::place_of(refused.holder.address) +
             "; each needs a name of its own, and where there are keys a key file of its own";
}

void ClusterNode::Impl::execute(const core::MemberRefused& refused) {
  if (!refused_.insert(refused.record.id).second) return;
  if (refused_.size() > refused_max) refused_.erase(refused_.begin());
  log("node " + refused.record.name + " at " + wire::place_of(refused.record.address) +
      " is refused: a node of that name is there already, at " +
      wire::place_of(refused.holder.address));
}

void ClusterNode::Impl::on_revoked(const security::Merged& merged) {
  for (const security::Revocation& revocation : merged.added)
    log("certificate " + security::print_serial(revocation.serial) + " is revoked");
  for (const auto& node : nodes_.all()) {
    const auto peer = wire::parse_peer(node.address);
    if (!peer || !peer->key || std::ranges::count(merged.revoked, *peer->key) == 0) continue;
    revoked_.insert(node.id);
    log("node " + node.name + " at " + wire::place_of(node.address) +
        " is revoked: its messages are refused now");
  }
  if (options_.on_revoked) options_.on_revoked(merged.added);
}

void ClusterNode::Impl::tell_loneliness() {
  if (membership_->joined() || now() < lonely_told_ + tell_loneliness_every) return;
  lonely_told_ = now();
  log("no answer from " + wire::place_of(options_.seeds.front()) +
      (options_.seeds.size() > 1 ? " and the other seed nodes" : "") +
      " yet: on its own; tries again and again");
}

std::vector<core::NodeRecord> ClusterNode::Impl::live_nodes() const {
  std::vector<core::NodeRecord> all = nodes_.live();
  all.insert(all.begin(), membership_->self());
  return all;
}

}  // namespace starling::actor
