#include "starling/engine/core/member/message_validator.hpp"

#include <algorithm>
#include <functional>
#include <type_traits>

namespace starling::core {
namespace {

/// Returns true if the sender may send a message to a member with the role R: one overload for each
/// type of message. A type without an overload does not compile.
template <class R>
struct Check {
  const MessageScope& scope;
  const R& role;

  [[nodiscard]] bool is_possible_next(const ConfigurationPtr& next) const {
    return may_follow(scope.configuration, next, scope.members_max);
  }
  bool operator()(const ConfigurationPtr& m) const { return is_possible_next(m); }
  /// The roles check their own messages. No member may send one of another role.
  template <class M>
  requires IsIn<M, RoleMessages>
  bool operator()(const M& m) const {
    if constexpr (IsIn<M, typename R::Messages>)
      return role.is_valid(scope, m);
    else
      return false;
  }
  bool operator()(const CouncilMessage& m) const { return std::visit(*this, m); }
  bool operator()(const RangeQuery&) const { return true; }
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
  bool operator()(const EpochProbe&) const { return true; }
  bool operator()(const MemberQuestion& m) const {
    return std::visit(
        [&]<class Q>(const Q& question) {
          if constexpr (IsIn<Q, typename R::Questions>)
            return role.is_valid_question(scope, question);
          else
            return false;
        },
        m.question);
  }
  bool operator()(const MemberAnswer& m) const {
    return std::visit(
        [&]<class A>(const A& answer) {
          if constexpr (IsIn<A, typename R::Answers>)
            return role.is_valid_answer(scope, answer);
          else
            return std::is_same_v<A, Refusal>;
        },
        m.answer);
  }
  bool operator()(const JoinRefused&) const { return false; }  // members do not ask to join

  [[nodiscard]] bool has_epoch(const ConfigurationPtr& value, Epoch epoch) const {
    return is_possible_next(value) && value->epoch == epoch;
  }
};

}  // namespace

bool is_valid(const MessageScope& scope, const AnyRole& role, const PeerMessage& peer_message) {
  return std::visit(
      [&]<class R>(const R& own) {
        return std::visit(Check<R>{scope, own}, peer_message);
      },
      role);
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
