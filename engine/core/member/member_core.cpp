#include "starling/engine/core/member/member_core.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/member/member_core_parts.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/engine/core/training/training_events.hpp"  // defines Training::on

namespace starling::core {

AnyRole make_role(const AnyRoleOptions& options, RoleSetup setup) {
  return std::visit(
      [&]<class Options>(const std::shared_ptr<const Options>& role_options) {
        STARLING_CHECK(role_options != nullptr);
        return AnyRole{std::in_place_type<typename Options::Role>, role_options, std::move(setup)};
      },
      options);
}

namespace {

/// True if the role is done and, if it deals samples or work, all members know the current deal.
/// Otherwise only this member may know what was taken, and others would take it again.
template <Role R>
bool may_leave(const R& role, const Configuration& configuration) {
  if constexpr (requires { role.dealer(); })
    if (const Dealer* dealer = role.dealer())
      return role.is_done() && dealer->has_begun() &&
             dealer->deal().number.epoch == configuration.members_since;
  return role.is_done();
}

}  // namespace

MemberCore::MemberCore(MemberOptions options)
    : options_(std::move(options)),
      role_(make_role(options_.role,
                      {options_.self, options_.members_max, options_.first_configuration})) {
  const Placement placement = std::visit([](const auto& role) { return role.placement(); }, role_);
  options_.council.self = options_.self;
  options_.council.bsp = placement.bsp;
  options_.council.unplaced_ranges = placement.unplaced_ranges;
  options_.council.node_by_node = placement.node_by_node;
  if (!options_.first_configuration || !options_.first_configuration->is_of_one_process())
    council_ = std::make_unique<Council>(options_.council);
}

void MemberCore::prepare(const MemberContext& context) {
  STARLING_CHECK(state_ == State::idle && options_.first_configuration &&
                 options_.first_configuration->is_of_one_process());
  is_prepared_ = true;
  adopt(context, options_.first_configuration);
}

void MemberCore::start(const MemberContext& context) {
  if (std::exchange(is_prepared_, false)) {
    run_role(context, [](auto& role, const auto& c) { role.start(c); });
    return finish_event(context);
  }
  STARLING_CHECK(state_ == State::idle);
  state_ = State::joining;
  join_started_at_ = context.now;
  if (options_.first_configuration)
    adopt(context, options_.first_configuration);
  else
    repeat_request(context);
  finish_event(context);
}

void MemberCore::on_packet(const MemberContext& context, const Envelope& envelope) {
  const Packet<PeerMessagePtr>& packet = envelope.packet;
  if (state_ == State::idle || state_ == State::failed || envelope.to != options_.self.id) return;
  // A member has no link to itself. A later incarnation of its id may send, from another node.
  if (envelope.from == options_.self.id && packet.from == options_.self.incarnation) return;
  if (configuration_ && configuration_->is_of_one_process()) return;
  if (packet.sequence == 0 && packet.payload) return receive_unreliable(context, envelope);
  const bool is_to_self = packet.to == options_.self.incarnation;
  if (state_ != State::excluded && packet.payload && is_to_self) {
    // Adopts a decided configuration at once, even if earlier packets of its channel are missing,
    // so that this member accepts packets of the members that the configuration adds.
    const auto* next = std::get_if<ConfigurationPtr>(&**packet.payload);
    if (next != nullptr && may_adopt(*next)) adopt(context, *next);
  }
  if (!configuration_) return;
  const bool is_from_member = configuration_->contains(envelope.from, packet.from);
  if (state_ != State::member || !is_from_member || !is_to_self) {
    if (envelope.epoch < configuration_->epoch)
      send_unreliable(context, envelope.from, packet.from, make_peer_message(configuration_));
    return finish_event(context);
  }
  Link& sender = *link(envelope.from);
  // If a sender falsely claims a later epoch than this member's, this member still sends it the
  // configurations that follow.
  sender.epoch_sent = std::max(sender.epoch_sent, std::min(envelope.epoch, configuration_->epoch));
  LinkEffects effects;
  sender.on({context.now, effects}, envelope, configuration_->epoch);
  execute_link_effects(context, envelope.from, envelope.traffic_class, std::move(effects));
  finish_event(context);
}

void MemberCore::on_local_message(const MemberContext& context, const LocalMessage& local) {
  if (state_ != State::member || local.epoch != configuration_->epoch ||
      !configuration_->contains(local.from, local.incarnation))
    return;
  deliver(context, local.from, local.message);
  finish_event(context);
}

void MemberCore::on_timer(const MemberContext& context, TimerKey key) {
  if (state_ != State::member && state_ != State::joining) return;
  if (key == council_key) {
    run_council(context, [](Council& council, const CouncilContext& c) { council.on_timer(c); });
  } else if (key == request_key) {
    timer_.remove_due(context.now);
    repeat_request(context);
  } else if (key == probe_key) {
    probe_epoch(context);
  } else if (key >> 32U == 0) {
    run_role(context, [&](auto& role, const auto& c) {
      role.on_timer(c, static_cast<std::uint32_t>(key - first_role_key));
    });
  } else if (Link* peer_link = link(Link::member_of(key)); peer_link && peer_link->has_timer(key)) {
    LinkEffects effects;
    peer_link->channel(Link::traffic_class_of(key)).on_timer({context.now, effects});
    execute_link_effects(context, Link::member_of(key), Link::traffic_class_of(key),
                         std::move(effects));
  }
  finish_event(context);
}

void MemberCore::on_input(const MemberContext& context, RoleInput input) {
  if (state_ != State::member && state_ != State::failed) return;
  run_role(context, [&]<class R>(R& role, const auto& c) {
    std::visit(
        [&]<class I>(I& one) {
          if constexpr (IsIn<I, typename R::Inputs>)
            if (state_ == State::member || R::template takes_when_failed<I>) role.on(c, one);
        },
        input);
  });
  finish_event(context);
}

void MemberCore::suspect(const MemberContext& context, MemberId id, Incarnation incarnation) {
  if (state_ != State::member) return;
  run_council(context,
              [&](Council& council, const auto& c) { council.suspect(c, id, incarnation); });
  finish_event(context);
}

void MemberCore::trust(const MemberContext& context, MemberId id, Incarnation incarnation) {
  if (state_ != State::member) return;
  run_council(context, [&](Council& council, const auto& c) { council.trust(c, id, incarnation); });
  finish_event(context);
}

void MemberCore::stop(const MemberContext& context) {
  if (state_ != State::member) return;
  run_role(context, [](auto& role, const auto& c) { role.stop(c); });
  finish_event(context);
}

void MemberCore::leave(const MemberContext& context) {
  if (state_ != State::member || configuration_->is_of_one_process() ||
      std::exchange(is_leaving_, true))
    return;
  run_role(context, [](auto& role, const auto& c) { role.leave(c); });
  repeat_request(context);
  finish_event(context);
}

void MemberCore::on_message(const MemberContext& context, MemberId from, Incarnation incarnation,
                            const PeerMessagePtr& peer_message) {
  if (state_ != State::member || !configuration_->contains(from, incarnation)) return;
  deliver(context, from, peer_message);
  finish_event(context);
}

void MemberCore::receive_unreliable(const MemberContext& context, const Envelope& envelope) {
  const Packet<PeerMessagePtr>& packet = envelope.packet;
  if (packet.to && *packet.to != options_.self.incarnation) return;
  if (std::holds_alternative<EpochProbe>(**packet.payload)) {
    if (!configuration_) return;
    if (envelope.epoch < configuration_->epoch)
      send_unreliable(context, envelope.from, packet.from, make_peer_message(configuration_));
    else if (envelope.epoch > configuration_->epoch && state_ == State::member)
      send_unreliable(context, envelope.from, packet.from, make_peer_message(EpochProbe{}));
    return;
  }
  if (const auto* next = std::get_if<ConfigurationPtr>(&**packet.payload)) {
    if (state_ != State::excluded && may_adopt(*next)) adopt(context, *next);
  } else if (const auto* request = std::get_if<JoinRequest>(&**packet.payload)) {
    receive_join_request(context, envelope, request->member);
  } else if (const auto* refused = std::get_if<JoinRefused>(&**packet.payload)) {
    const auto& seeds = options_.seeds;
    if (state_ == State::joining && std::ranges::find(seeds, envelope.from) != seeds.end())
      fail(context, "refused to join: " + refused->why);
  }
  finish_event(context);
}

void MemberCore::finish_event(const MemberContext& context) {
  for (std::size_t i = 0; state_ == State::member && i < inbox_.size(); ++i)
    deliver(context, options_.self.id, PeerMessagePtr{inbox_[i]});
  inbox_.clear();
  const std::uint64_t version =
      std::visit([](const auto& r) { return r.full_ranges_version(); }, role_);
  if (state_ != State::member || reported_version_ == version) return;
  reported_version_ = version;
  report_full_ranges(context);
  finish_event(context);
}

void MemberCore::deliver(const MemberContext& context, MemberId from,
                         const PeerMessagePtr& peer_message) {
  if (!is_valid({*configuration_, from, options_.members_max}, role_, *peer_message)) return;
  std::visit([&](const auto& message) { handle(context, from, peer_message, message); },
             *peer_message);
}

void MemberCore::handle(const MemberContext& context, MemberId from, const PeerMessagePtr&,
                        const CouncilMessage& message) {
  bool has_current_epoch = true;
  run_council(context, [&](Council& council, const CouncilContext& c) {
    has_current_epoch = council.on(c, from, message);
  });
  if (!has_current_epoch) send_configuration(context, from);
}

template <class M>
void MemberCore::handle(const MemberContext& context, MemberId from,
                        const PeerMessagePtr& peer_message, const M& message) {
  if constexpr (std::is_same_v<M, ConfigurationPtr>) {
    if (message->epoch > configuration_->epoch) adopt(context, message);
  } else if constexpr (std::is_same_v<M, JoinRequest>) {
    run_council(context, [&](Council& council, const auto& c) { council.join(c, message.member); });
  } else if constexpr (std::is_same_v<M, LeaveRequest>) {
    run_council(context, [&](Council& council, const auto& c) {
      council.leave(c, message.member, message.epoch);
    });
  } else if constexpr (IsIn<M, RoleMessages>) {
    const bool is_accepted = run_role(context, [&]<class R>(R& role, const auto& c) {
      using Shared = std::shared_ptr<const M>;
      if constexpr (!IsIn<M, typename R::Messages>)
        return true;
      else if constexpr (requires { role.on(c, from, Shared{}); })
        return role.on(c, from, Shared{peer_message, &message});
      else
        return role.on(c, from, message);
    });
    if (!is_accepted) send_configuration(context, from);
  } else if constexpr (std::is_same_v<M, MemberQuestion>) {
    post(context, from, make_peer_message(MemberAnswer{message.number, answer(message.question)}));
  } else if constexpr (std::is_same_v<M, MemberAnswer>) {
    receive_answer(context, from, message);
  } else {
    static_assert(IsIn<M, TypeList<EpochProbe, JoinRefused>>, "nobody handles this message");
  }
}

/// Sends the request to join or, once the role is done, to leave. Repeats the request until a
/// configuration grants it.
void MemberCore::repeat_request(const MemberContext& context) {
  if (state_ == State::joining) {
    if (context.now >= join_started_at_ + options_.council.stuck_after)
      return fail(context, "no member has let this node join within " +
                               print_duration(options_.council.stuck_after));
    if (!options_.seeds.empty())
      send_unreliable(context, options_.seeds[context.random.below(options_.seeds.size())],
                      std::nullopt, make_peer_message(JoinRequest{options_.self}));
  } else if (state_ == State::member && is_leaving_) {
    if (std::visit([&](const auto& role) { return may_leave(role, *configuration_); }, role_))
      post_to_council(context,
                      make_peer_message(LeaveRequest{options_.self, configuration_->epoch}));
  } else {
    return;
  }
  MemberEffects& out = context.out;
  Effects timers;
  timer_.ensure(Context{context.now, context.random, timers}, context.now + options_.request_every);
  for (const Effect& timer : timers)
    out.push_back(MemberTimer{std::get<SetTimer>(timer).at, request_key});
}

void MemberCore::probe_epoch(const MemberContext& context) {
  if (state_ != State::member) return;
  const auto& members = configuration_->members;
  const Member& other = members[context.random.below(members.size())];
  if (other.id != options_.self.id)
    send_unreliable(context, other.id, other.incarnation, make_peer_message(EpochProbe{}));
  context.out.push_back(MemberTimer{context.now + options_.probe_interval, probe_key});
}

void MemberCore::execute(const MemberContext& context, const SpreadConfiguration&) {
  for (const Member& member : configuration_->members) send_configuration(context, member.id);
}

void MemberCore::execute(const MemberContext& context, const RoleTimer& timer) {
  context.out.push_back(MemberTimer{timer.at, first_role_key + timer.key});
}

void MemberCore::execute(const MemberContext& context, Fail& failure) {
  fail(context, std::move(failure.why));
}

void MemberCore::fail(const MemberContext& context, std::string why) {
  if (std::exchange(state_, State::failed) == State::failed) return;
  context.out.push_back(Fail{std::move(why)});
  review_open_questions(context);
}

}  // namespace starling::core
