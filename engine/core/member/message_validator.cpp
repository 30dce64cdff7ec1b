#include "starling/engine/core/member/message_validator.hpp"

#include <algorithm>
#include <functional>

#include "starling/engine/core/deals/dealer.hpp"

namespace starling::core {
namespace {

/// Returns true if the sender may send a message: one overload for each type of message. A type
/// without an overload does not compile.
struct Check {
  const MessageScope& scope;

  [[nodiscard]] bool is_possible_next(const ConfigurationPtr& next) const {
    return may_follow(scope.configuration, next, scope.members_max);
  }
  /// True if `worker` is the sender, and the sender computes updates.
  [[nodiscard]] bool is_senders_worker(MemberId worker) const {
    const Member* sender = scope.configuration.find(scope.from);
    return worker == scope.from && sender != nullptr && sender->works;
  }

  bool operator()(const ConfigurationPtr& m) const { return is_possible_next(m); }
  /// The exchanges check their own messages.
  template <class M>
  requires IsIn<M, ExchangeMessages>
  bool operator()(const M& m) const { return core::is_valid(scope, m); }
  bool operator()(const Ended& m) const {
    return is_senders_worker(m.worker) && m.step <= barrier::finished;
  }
  bool operator()(const Arrived& m) const {
    return is_senders_worker(m.worker) && m.step < barrier::finished;
  }
  bool operator()(const Proceed&) const { return scope.from == scope.configuration.coordinator; }
  bool operator()(const Stop&) const { return scope.from == scope.configuration.coordinator; }
  bool operator()(const WorkerStatus& m) const {
    const bool is_senders =
        m.phase == WorkerStatus::Phase::idle ? m.member == scope.from : is_senders_worker(m.member);
    return is_senders && m.step <= barrier::finished && m.held < barrier::finished;
  }
  /// These messages name their sender, and no other field of them can be invalid.
  template <class M>
  requires IsIn<M, MessageList<StepQuery, StepAnswer, NotifyRequest, Notice>>
  bool operator()(const M& m) const { return m.from == scope.from; }
  bool operator()(const CouncilMessage& m) const { return std::visit(*this, m); }
  bool operator()(const Ask&) const { return true; }
  bool operator()(const RangeReport&) const { return true; }
  bool operator()(const SuspicionReport&) const { return true; }
  bool operator()(const Prepare& m) const { return m.ballot.proposer == scope.from; }
  /// A council member that promises a ballot has accepted no later one.
  bool operator()(const Promise& m) const {
    return m.accepted <= m.ballot && (!m.value || has_epoch(m.value, m.epoch));
  }
  bool operator()(const Nack&) const { return true; }
  bool operator()(const Accept& m) const {
    return m.ballot.proposer == scope.from && has_epoch(m.value, m.epoch);
  }
  bool operator()(const Accepted&) const { return true; }
  bool operator()(const JoinRequest& m) const { return m.member.id < scope.members_max; }
  bool operator()(const LeaveRequest& m) const {
    return m.member.id == scope.from &&
           scope.configuration.contains(scope.from, m.member.incarnation);
  }
  /// The dealer checks the former deals, because these depend on the job's data.
  bool operator()(const DealReport& m) const {
    return m.epoch <= scope.configuration.epoch && m.deal.epoch < m.epoch &&
           m.taken.value_or(0) < barrier::finished && m.begun.value_or(0) <= barrier::finished &&
           has_valid_workers(m.deal) && std::ranges::all_of(m.progress, is_valid_progress);
  }
  bool operator()(const NewDeal& m) const {
    return scope.from == Dealer::dealer_of(scope.configuration) &&
           m.deal.epoch <= scope.configuration.epoch && has_valid_workers(m.deal);
  }
  [[nodiscard]] bool has_valid_workers(const Deal& deal) const {
    return std::ranges::adjacent_find(deal.workers, std::greater_equal<>{}, &DealtWorker::id) ==
               deal.workers.end() &&
           (deal.workers.empty() || deal.workers.back().id < scope.members_max) &&
           std::ranges::all_of(deal.workers, [](const DealtWorker& worker) {
             return worker.first_step.value_or(0) <= barrier::finished;
           });
  }
  static bool is_valid_progress(const WorkerProgress& progress) {
    return progress.step <= barrier::finished && progress.samples < barrier::finished;
  }
  bool operator()(const EpochProbe&) const { return true; }
  bool operator()(const MemberQuestion& m) const {
    const auto* value = std::get_if<AskValue>(&m.question);
    return value == nullptr || scope.has_range(value->range);
  }
  bool operator()(const MemberAnswer& m) const {
    const auto* value = std::get_if<Value>(&m.answer);
    return value == nullptr || scope.fits_range(value->range, value->value);
  }
  bool operator()(const JoinRefused&) const { return false; }  // members do not ask to join

  [[nodiscard]] bool has_epoch(const ConfigurationPtr& value, Epoch epoch) const {
    return is_possible_next(value) && value->epoch == epoch;
  }
};

}  // namespace

bool is_valid(const MessageScope& scope, const PeerMessage& peer_message) {
  return std::visit(Check{scope}, peer_message);
}

bool is_valid(const ConfigurationPtr& next, MemberId members_max) {
  if (!next || next->epoch > epoch_max || next->members_since > next->epoch) return false;
  const auto& members = next->members;
  const auto is_member = [&](MemberId id) { return next->find(id) != nullptr; };
  return std::ranges::adjacent_find(members, std::greater_equal<>{}, &Member::id) ==
             members.end() &&
         (members.empty() || members.back().id < members_max) &&
         (!next->coordinator || is_member(*next->coordinator)) && !next->council.empty() &&
         std::ranges::is_sorted(next->council) && std::ranges::all_of(next->council, is_member) &&
         std::ranges::all_of(next->ranges, [&](const Ownership& range) {
           return std::ranges::all_of(range.owners, is_member, &RangeOwner::id);
         });
}

bool may_follow(const Configuration& now, const ConfigurationPtr& next, MemberId members_max) {
  const auto is_near = [&] {
    return next->epoch <= now.epoch || next->epoch - now.epoch <= epoch_jump_max;
  };
  return is_valid(next, members_max) && is_near() && next->ranges.size() == now.ranges.size() &&
         next->coordinator.has_value() == now.coordinator.has_value();
}

}  // namespace starling::core
