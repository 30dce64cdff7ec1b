/// How a MemberCore adopts a decided configuration and passes it to its worker, exchange,
/// coordinator and council, and to the other members.
#include <algorithm>
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
  return is_valid(next, options_.members_max) && next->ranges.size() == range_count() &&
         next->coordinator.has_value() == keeps_steps_centrally(options_.mode);
}

void MemberCore::adopt(const MemberContext& context, const ConfigurationPtr& next) {
  if (state_ == State::failed || state_ == State::excluded) return;
  if (!next->contains(options_.self.id, options_.self.incarnation)) {
    const bool was_member = next->is_or_was_member(options_.self.id, options_.self.incarnation);
    if (state_ == State::joining && !was_member) return;  // has not joined yet
    state_ = State::excluded;
    configuration_ = next;
    review_open_questions(context);
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
  run_exchange(context, [&](auto& exchange, const auto& c) {
    exchange.on_configuration(c, next, former ? former->epoch : 0);
  });
  inform_coordinator(context, former.get());
  const bool deal_changes = dealer_ && dealer_->begin_report(*next);
  if (deal_changes && worker_) worker_->hold();
  inform_worker(context, former.get());
  if (deal_changes) report_deal(context);
  send_status(context, former.get());
  review_open_questions(context);
  report_full_ranges(context);
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.on_configuration(c, configuration_);
  });
}

/// Returns how many ranges a configuration of this job places.
std::size_t MemberCore::range_count() const {
  return exchange_type(options_.exchange.name).places_ranges
             ? options_.exchange.layout->ranges.size()
             : 0;
}

/// Tells the council which ranges this member holds.
void MemberCore::report_full_ranges(const MemberContext& context) {
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.on_full_ranges(c, std::visit([](const auto& e) { return e.full_ranges(); }, exchange_));
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

/// Passes the workers to the worker, or makes the worker if this is the first configuration.
void MemberCore::inform_worker(const MemberContext& context, const Configuration* former) {
  if (!options_.self.works) return;
  WorkerConfiguration next = former == nullptr && options_.first_worker_configuration
                                 ? *options_.first_worker_configuration
                                 : worker_configuration(*configuration_, former);
  if (worker_)
    return run_worker(context,
                      [&](Worker& w, const Context& c) { w.on_workers(c, std::move(next)); });
  WorkerOptions& worker = options_.worker;
  worker.workers = std::move(next.workers);
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
      coordinator_->add_founder(worker,
                                first_ledger_entry(*options_.exchange.initial_states, worker).step);
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
  WorkerStatus status =
      worker_ ? worker_->report_status() : WorkerStatus{.member = options_.self.id};
  for (const WorkerProgress& progress :
       std::visit([](const auto& e) { return e.progress(); }, exchange_))
    status.held = std::max(status.held, progress.step);
  post(context, *now.coordinator, make_peer_message(status));
}

/// Sends the dealer what this member knows about the samples that were taken.
void MemberCore::report_deal(const MemberContext& context) {
  DealReport report{.epoch = configuration_->members_since, .deal = dealer_->deal()};
  if (worker_) {
    report.taken = worker_->dealt_steps_begun();
    report.begun = worker_->steps_begun();
    report.is_done = worker_->is_done();
  }
  report.progress = dealer_->progress_of_gone(
      *configuration_, std::visit([](const auto& e) { return e.progress(); }, exchange_));
  post(context, Dealer::dealer_of(*configuration_), make_peer_message(std::move(report)));
}

void MemberCore::receive(const MemberContext& context, MemberId from, const DealReport& report) {
  if (!dealer_) return;
  const auto next = dealer_->on(*configuration_, from, report);
  if (!next) return;
  const PeerMessagePtr message = make_peer_message(NewDeal{*next});
  for (const Member& member : configuration_->members) post(context, member.id, message);
}

void MemberCore::receive(const MemberContext& context, MemberId, const NewDeal& next) {
  if (!dealer_ || !dealer_->on(*configuration_, next)) return;
  run_worker(context, [&](Worker& worker, const Context& c) {
    worker.on_deal(c, dealer_->part_of(options_.self.id));
  });
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
