/// Everything the members of a replicated job say to one another, and how it travels: messages in
/// channels, in packets that name both ends and the sender's epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "starling/engine/core/channel.hpp"
#include "starling/engine/core/council.hpp"
#include "starling/engine/core/replica.hpp"
#include "starling/engine/core/traffic_class.hpp"

namespace starling::core {

/// To any member, now and then: the envelope's epoch says all. Whoever knows a later one answers
/// with its configuration, so that nobody stays behind who has nothing to say or is no member any
/// more.
struct EpochProbe {};
/// To any member, and by it to the council: take me in.
struct JoinRequest {
  Member member;
};
/// To the council: let me go.
struct LeaveRequest {
  Member member;
};
/// To whoever asked to be taken in: it never will be.
struct JoinRefused {
  std::string why;
};

using PeerMessage =
    std::variant<ConfigurationPtr, Pull, Value, Push, Ack, Ended, Arrived, Proceed, Stop, StepQuery,
                 StepAnswer, NotifyAt, CaughtUp, Install, Forward, Held, CouncilMessage,
                 JoinRequest, LeaveRequest, EpochProbe, JoinRefused, WorkerStatus>;
/// Immutable and shared: a packet that is sent again, and every copy of it, holds the same
/// peer_message.
using PeerMessagePtr = std::shared_ptr<const PeerMessage>;

/// Returns `data` for messages that may hold tensors, else `control`.
[[nodiscard]] TrafficClass traffic_class_of(const PeerMessage& peer_message);
[[nodiscard]] inline PeerMessagePtr peer_message_of(PeerMessage peer_message) {
  return std::make_shared<const PeerMessage>(std::move(peer_message));
}
/// Returns the bytes of the tensors in a message.
[[nodiscard]] std::size_t payload_bytes(const PeerMessagePtr& peer_message);

/// What the network carries from node to node. A packet with a message and no number belongs to no
/// channel: it comes from, or goes to, someone that is no member.
struct Envelope {
  MemberId from = 0;
  MemberId to = 0;
  /// The sender's; 0 before its first.
  Epoch epoch = 0;
  /// The channel whose packet it is.
  TrafficClass traffic_class = TrafficClass::control;
  Packet<PeerMessagePtr> packet;
};

}  // namespace starling::core
