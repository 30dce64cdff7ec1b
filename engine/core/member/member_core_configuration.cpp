/// How a MemberCore adopts a decided configuration and passes it to its role, its council, and the
/// other members.
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
  return is_valid(next, options_.members_max) &&
         std::visit([&](const auto& role) { return role.fits(*next); }, role_);
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
  run_role(context, [&](auto& role, const auto& c) { role.on_configuration(c, next, former); });
  review_open_questions(context);
  report_full_ranges(context);
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.on_configuration(c, configuration_);
  });
}

/// Tells the council which ranges this member holds.
void MemberCore::report_full_ranges(const MemberContext& context) {
  run_council(context, [&](Council& council, const CouncilContext& c) {
    council.on_full_ranges(c, std::visit([](const auto& r) { return r.full_ranges(); }, role_));
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

/// This member's ballot has decided `next`: adopts it, and sends it to all members of the former
/// and of the new configuration. If `next` excludes this member, perhaps no other member knows
/// `next` yet, and the former council may need this member's vote. So this member stays until
/// another member sends it `next`, and sends `next` only to the members of `next`: other members
/// that `next` excludes must stay, too.
void MemberCore::adopt_decided(const MemberContext& context, const ConfigurationPtr& next) {
  const ConfigurationPtr former = configuration_;
  const auto is_self = [&](const Member& member) { return member.id == options_.self.id; };
  const bool stays = next->contains(options_.self.id, options_.self.incarnation);
  if (stays || std::ranges::all_of(next->members, is_self)) adopt(context, next);
  if (!stays && std::exchange(excluded_in_, next->epoch) == next->epoch) return;  // it was sent
  const PeerMessagePtr announcement = make_peer_message(next);
  for (const Member& member : next->members) {
    if (is_self(member)) continue;
    if (stays)
      send_configuration(context, member.id);
    else if (former->contains(member.id, member.incarnation))
      send_by_link(context, member.id, PeerMessagePtr{announcement});
    else
      send_unreliable(context, member.id, member.incarnation, announcement);
  }
  for (const Member& member : former->members)
    if (stays && !next->contains(member.id, member.incarnation))
      send_unreliable(context, member.id, member.incarnation, announcement);
}

}  // namespace starling::core
