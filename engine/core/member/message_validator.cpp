#include "starling/engine/core/member/message_validator.hpp"

#include <algorithm>
#include <functional>

namespace starling::core {
namespace {

/// Returns true if the sender may send a message: one overload for each type of message. A type
/// without an overload does not compile.
struct Check {
  const MessageValidator& validator;

  [[nodiscard]] bool has_range(RangeId range) const {
    return range < validator.configuration.ranges.size() && range < validator.layout.ranges.size();
  }
  [[nodiscard]] bool fits_range(RangeId range, const Slice& slice) const {
    return has_range(range) && fits(validator.layout.ranges[range], slice, validator.element_bytes);
  }
  [[nodiscard]] bool has_valid_update(const Push& push) const {
    return push.update.empty() ? has_range(push.range) : fits_range(push.range, push.update);
  }
  [[nodiscard]] bool is_from_primary(RangeId range) const {
    return has_range(range) && !validator.configuration.ranges[range].owners.empty() &&
           validator.configuration.ranges[range].owners.front().id == validator.from;
  }
  [[nodiscard]] bool is_possible_next(const ConfigurationPtr& next) const {
    return may_follow(validator.configuration, next, validator.members_max);
  }
  /// True if `worker` is the sender, and the sender computes updates.
  [[nodiscard]] bool is_senders_worker(MemberId worker) const {
    const Member* sender = validator.configuration.find(validator.from);
    return worker == validator.from && sender != nullptr && sender->works;
  }

  bool operator()(const ConfigurationPtr& m) const { return is_possible_next(m); }
  bool operator()(const Pull& m) const { return m.worker == validator.from && has_range(m.range); }
  bool operator()(const Value& m) const { return fits_range(m.range, m.value); }
  bool operator()(const Push& m) const {
    return validator.configuration.contains(m.worker, m.incarnation) &&
           m.worker == validator.from && has_valid_update(m);
  }
  bool operator()(const Ack& m) const { return is_from_primary(m.range); }
  bool operator()(const Ended& m) const {
    return is_senders_worker(m.worker) && m.step <= barrier::finished;
  }
  bool operator()(const Arrived& m) const {
    return is_senders_worker(m.worker) && m.step < barrier::finished;
  }
  bool operator()(const Proceed&) const {
    return validator.from == validator.configuration.coordinator;
  }
  bool operator()(const Stop&) const {
    return validator.from == validator.configuration.coordinator;
  }
  bool operator()(const WorkerStatus& m) const {
    const bool is_senders = m.phase == WorkerStatus::Phase::idle ? m.member == validator.from
                                                                 : is_senders_worker(m.member);
    return is_senders && m.step <= barrier::finished && m.held < barrier::finished;
  }
  /// These messages name their sender, and no other field of them can be invalid.
  template <class M>
  requires IsIn<M, MessageList<StepQuery, StepAnswer, NotifyRequest, Notice>>
  bool operator()(const M& m) const { return m.from == validator.from; }
  bool operator()(const Install& m) const { return m.state && has_range(m.state->range); }
  bool operator()(const Forward& m) const {
    const MemberId worker = m.push ? m.push->worker : m.ended;
    return has_range(m.range) && worker < validator.members_max &&
           (!m.push || (m.push->range == m.range && has_valid_update(*m.push)));
  }
  bool operator()(const Held& m) const { return has_range(m.range); }
  bool operator()(const CouncilMessage& m) const { return std::visit(*this, m); }
  bool operator()(const Ask&) const { return true; }
  bool operator()(const RangeReport&) const { return true; }
  bool operator()(const SuspicionReport&) const { return true; }
  bool operator()(const Prepare& m) const { return m.ballot.proposer == validator.from; }
  /// A council member that promises a ballot has accepted no later one.
  bool operator()(const Promise& m) const {
    return m.accepted <= m.ballot && (!m.value || has_epoch(m.value, m.epoch));
  }
  bool operator()(const Nack&) const { return true; }
  bool operator()(const Accept& m) const {
    return m.ballot.proposer == validator.from && has_epoch(m.value, m.epoch);
  }
  bool operator()(const Accepted&) const { return true; }
  bool operator()(const JoinRequest& m) const { return m.member.id < validator.members_max; }
  bool operator()(const LeaveRequest& m) const {
    return m.member.id == validator.from &&
           validator.configuration.contains(validator.from, m.member.incarnation);
  }
  bool operator()(const EpochProbe&) const { return true; }
  bool operator()(const MemberQuestion& m) const {
    const auto* value = std::get_if<AskValue>(&m.question);
    return value == nullptr || has_range(value->range);
  }
  bool operator()(const MemberAnswer& m) const {
    const auto* value = std::get_if<Value>(&m.answer);
    return value == nullptr || (*this)(*value);
  }
  bool operator()(const JoinRefused&) const { return false; }  // members do not ask to join

  [[nodiscard]] bool has_epoch(const ConfigurationPtr& value, Epoch epoch) const {
    return is_possible_next(value) && value->epoch == epoch;
  }
};

}  // namespace

bool MessageValidator::is_valid(const PeerMessage& peer_message) const {
  return std::visit(Check{*this}, peer_message);
}

bool is_valid(const ConfigurationPtr& next, MemberId members_max) {
  if (!next || next->epoch > epoch_max) return false;
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
