/// How a MemberCore adopts a decided configuration and passes it to its worker, replica,
/// coordinator and council, and to the other members.
#include <memory>
#include <utility>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/core/member/member_core_parts.hpp"
#include "starling/engine/core/member/message_validator.hpp"

namespace starling::core {

bool MemberCore::may_adopt(const ConfigurationPtr& next) const {
  if (configuration_)
    return may_follow(*configuration_, next, options_.members_max) &&
           next->epoch > configuration_->epoch;
  return is_valid(next, options_.members_max) &&
         next->ranges.size() == options_.shard.layout->ranges.size() &&
         next->coordinator.has_value() == keeps_steps_centrally(options_.mode);
}

void MemberCore::adopt(const MemberContext& context, const ConfigurationPtr& next) {
  if (state_ == State::failed || state_ == State::excluded) return;
  if (!next->contains(options_.self.id, options_.self.incarnation)) {
    const bool was_member = next->is_or_was_member(options_.self.id, options_.self.incarnation);
    if (state_ == State::joining && !was_member) return;  // has not joined yet
    state_ = State::excluded;
    configuration_ = next;
    context.out.push_back(Excluded{});
    return;
  }
  const ConfigurationPtr former = std::exchange(configuration_, next);
  const bool is_first = state_ != State::member;
  state_ = State::member;
  if (!next->is_of_one_process()) {
    if (is_first)
      context.out.push_back(MemberTimer{context.now + options_.probe_interval, probe_key});
    renew_links(*next);
  }
  if (next->has_lost_range()) return fail(context, "a range has lost all its owners");
  run_replica(context, [&](Replica& replica, const ReplicaContext& c) {
    replica.on_configuration(c, *next, former ? former->epoch : 0);
    return true;
  });
  inform_coordinator(context, former.get());
  inform_worker(context, former.get());
  send_status(context, former.get());
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.on_full_ranges(c, replica_->full_ranges());
    council.on_configuration(c, configuration_);
  });
}

/// Makes links to the new members, and removes the links to incarnations that are not members.
void MemberCore::renew_links(const Configuration& next) {
  for (MemberId id = 0; id < links_.size(); ++id) {
    if (!links_[id]) continue;
    if (!next.contains(id, links_[id]->channel(TrafficClass::control).other())) links_[id].reset();
  }
  for (const Member& member : next.members) {
    if (member.id == options_.self.id) continue;
    if (member.id >= links_.size()) links_.resize(member.id + 1);
    if (links_[member.id]) continue;
    const Channel<PeerMessagePtr> channel{options_.self.incarnation, member.incarnation,
                                          options_.channel};
    links_[member.id] =
        std::make_unique<Link>(Link{{channel, channel}, 0, (++link_count_ << 32U) + member.id});
    if (next.epoch == 1)
      links_[member.id]->epoch_sent = 1;  // the members of epoch 1 know its configuration
  }
}

/// Passes the configuration to the worker, or makes the worker if this is the first configuration.
void MemberCore::inform_worker(const MemberContext& context, const Configuration* former) {
  if (!options_.self.works) return;
  WorkerConfiguration next = former == nullptr && options_.first_worker_configuration
                                 ? *options_.first_worker_configuration
                                 : worker_configuration(*configuration_, former);
  if (worker_)
    return run_worker(context,
                      [&](Worker& w, const Context& c) { w.on_configuration(c, std::move(next)); });
  WorkerOptions& worker = options_.worker;
  worker.workers = std::move(next.workers);
  worker.owner_of = std::move(next.owner_of);
  worker.owner_epochs = std::move(next.owner_epochs);
  worker_.emplace(worker);
  if (!is_prepared_) run_worker(context, [](Worker& w, const Context& c) { w.start(c); });
}

/// If this member is coordinator: passes the changes to the Coordinator, or makes it.
void MemberCore::inform_coordinator(const MemberContext& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (now.coordinator != options_.self.id) return;
  if (coordinator_)
    return run_coordinator(context, [&](Coordinator& coordinator, const Context& c) {
      std::vector<MemberId> left;
      for (const Member& member : former->members_not_in(now)) left.push_back(member.id);
      coordinator.on_members(c, left, workers_of(now.members_not_in(*former)));
    });
  coordinator_ = std::make_unique<Coordinator>(
      CoordinatorOptions{options_.worker.barrier, options_.worker.recheck});
  const std::vector<MemberId> workers = workers_of(now.members);
  if (now.epoch == 1) {
    for (const MemberId worker : workers)
      coordinator_->add_founder(worker, first_ledger_entry(*options_.initial_states, worker).step);
    return;
  }
  coordinator_->take_over(workers, owners_of(now));
  for (const Member& member : now.members)
    send_configuration(context, member.id);  // each member answers with its WorkerStatus
}

/// If the coordinator has changed, sends the new one what this member knows about the steps.
void MemberCore::send_status(const MemberContext& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (!now.coordinator || now.epoch == 1) return;
  if (former != nullptr && now.has_same_coordinator_as(*former)) return;
  WorkerStatus status = worker_ ? worker_->status() : WorkerStatus{.member = options_.self.id};
  status.held = replica_->shard().highest_step();
  post(context, *now.coordinator, make_peer_message(status));
}

/// Sends the decided configuration to all members of the former and of the new configuration.
void MemberCore::announce_configuration(const MemberContext& context,
                                        const ConfigurationPtr& former) {
  for (const Member& member : configuration_->members) {
    if (member.id == options_.self.id) continue;
    if (state_ == State::excluded)
      send_unreliable(context, member.id, member.incarnation, make_peer_message(configuration_));
    else
      send_configuration(context, member.id);
  }
  for (const Member& member : former->members)
    if (!configuration_->contains(member.id, member.incarnation) && member.id != options_.self.id)
      send_unreliable(context, member.id, member.incarnation, make_peer_message(configuration_));
}

}  // namespace starling::core
