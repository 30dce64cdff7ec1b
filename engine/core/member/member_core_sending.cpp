/// How a MemberCore sends packets: by its links to members, and without a channel to nodes that may
/// not be members.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

/// Handles a packet. `known_epoch` is the epoch of this member's configuration. Configurations
/// travel as control traffic, so a data packet of a later epoch may come before its configuration.
/// This function uses only the acknowledgements of such a packet; its sender sends the payload
/// again.
void MemberCore::Link::on(const ChannelContext<PeerMessagePtr>& context, const Envelope& envelope,
                          Epoch known_epoch) {
  if (envelope.traffic_class == TrafficClass::data && envelope.epoch > known_epoch)
    channel(TrafficClass::data).on_acknowledgement(context, envelope.packet);
  else
    channel(envelope.traffic_class).on(context, envelope.packet);
}

MemberCore::Link* MemberCore::link(MemberId id) const {
  return id < links_.size() ? links_[id].get() : nullptr;
}

void MemberCore::execute_link_effects(const MemberContext& context, MemberId id,
                                      TrafficClass traffic_class, LinkEffects effects) {
  const Epoch epoch = configuration_->epoch;
  const TimerKey key = link(id)->timer_key_of(traffic_class);
  for (auto& effect : effects) {
    if (auto* transmit = std::get_if<Transmit<PeerMessagePtr>>(&effect)) {
      context.out.push_back(
          Dispatch{{options_.self.id, id, epoch, traffic_class, std::move(transmit->packet)}});
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, key});
    } else if (auto* delivery = std::get_if<Deliver<PeerMessagePtr>>(&effect)) {
      // An earlier message may have excluded the sender's incarnation, and so removed this link.
      if (state_ == State::member && link(id) != nullptr && link(id)->has_timer(key))
        deliver(context, id, delivery->payload);
    }
  }
}

namespace {

bool is_asked_again(const PeerMessage& peer_message) {
  return std::visit(
      []<class M>(const M&) {
        if constexpr (requires { M::is_asked_again; })
          return M::is_asked_again;
        else
          return false;
      },
      peer_message);
}

}  // namespace

/// Sends a message to a member, which may be this one. Sends this member's configuration first, if
/// the receiver may not know it. Drops the message if `to` is not a member. If the channel is
/// stalled, also drops a message that is asked for again when it is lost (`is_asked_again`):
/// repeated questions would fill the window, and votes and reports of suspicions would wait behind
/// them.
void MemberCore::post(const MemberContext& context, MemberId to, PeerMessagePtr peer_message) {
  if (to == options_.self.id) {
    inbox_.push_back(std::move(peer_message));
    return;
  }
  if (configuration_->is_of_one_process()) {
    context.out.push_back(LocalMessage{options_.self.id, options_.self.incarnation, to,
                                       configuration_->epoch, std::move(peer_message)});
    return;
  }
  Link* receiver = link(to);
  if (receiver == nullptr) return;
  if (is_asked_again(*peer_message) && receiver->channel(TrafficClass::control).is_stalled())
    return;
  send_configuration(context, to);
  send_by_link(context, to, std::move(peer_message));
}

/// Sends a message on the channel of its traffic class. The job fails if that channel's queue is
/// full. Requires: there is a link to `to`.
void MemberCore::send_by_link(const MemberContext& context, MemberId to,
                              PeerMessagePtr peer_message) {
  const TrafficClass traffic_class = traffic_class_of(*peer_message);
  LinkEffects effects;
  if (!link(to)->channel(traffic_class).send({context.now, effects}, std::move(peer_message)))
    fail(context, "the queue for member " + std::to_string(to) +
                      " is full: the member acknowledges no messages, but is not known to be dead");
  execute_link_effects(context, to, traffic_class, std::move(effects));
}

void MemberCore::post_to_council(const MemberContext& context, const PeerMessagePtr& peer_message) {
  const ConfigurationPtr now = configuration_;
  for (const MemberId id : now->council) post(context, id, peer_message);
}

/// Sends a member the configuration, unless the member knows it or was sent it.
void MemberCore::send_configuration(const MemberContext& context, MemberId id) {
  Link* receiver = link(id);
  if (receiver == nullptr || receiver->epoch_sent >= configuration_->epoch) return;
  receiver->epoch_sent = configuration_->epoch;
  send_by_link(context, id, make_peer_message(configuration_));
}

/// Sends a message once, without a channel, to a node that may not be a member.
void MemberCore::send_unreliable(const MemberContext& context, MemberId to,
                                 std::optional<Incarnation> incarnation,
                                 PeerMessagePtr peer_message) const {
  Packet<PeerMessagePtr> packet;
  packet.from = options_.self.incarnation;
  packet.to = incarnation;
  packet.payload = std::move(peer_message);
  const Epoch epoch = configuration_ ? configuration_->epoch : 0;
  context.out.push_back(
      Dispatch{{options_.self.id, to, epoch, TrafficClass::control, std::move(packet)}});
}

/// Handles a request to join, whose sender need not be a member.
void MemberCore::receive_join_request(const MemberContext& context, const Envelope& envelope,
                                      const Member& member) {
  const Incarnation incarnation = envelope.packet.from;
  if (!configuration_ || member.id != envelope.from || member.incarnation != incarnation) return;
  if (state_ == State::excluded || configuration_->is_or_was_member(member.id, incarnation))
    send_unreliable(context, member.id, incarnation, make_peer_message(configuration_));
  else if (member.id >= options_.members_max)
    send_unreliable(context, member.id, incarnation,
                    make_peer_message(JoinRefused{
                        "member ids must be below " + std::to_string(options_.members_max) +
                        ", and this id is " + std::to_string(member.id)}));
  else if (state_ == State::member)
    post_to_council(context, make_peer_message(JoinRequest{member}));
}

}  // namespace starling::core
