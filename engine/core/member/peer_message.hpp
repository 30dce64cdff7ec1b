/// The messages between the members of a job, and the envelopes in which they travel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/council/council.hpp"
#include "starling/engine/core/member/question.hpp"
#include "starling/engine/core/member/roles.hpp"
#include "starling/engine/core/traffic_class.hpp"

namespace starling::core {

/// Sent to a random member at intervals. It has no content, but its envelope holds the sender's
/// epoch. A receiver that knows a later epoch answers with its configuration. So members that send
/// nothing else, and former members, learn of later epochs too.
struct EpochProbe {
  static constexpr std::string_view name = "epoch-probe";
};
/// `member` asks to join. It sends this to any member, which passes it to the council.
struct JoinRequest {
  Member member;
  static constexpr std::string_view name = "join-request";
  static constexpr auto fields(auto& m) { return std::tie(m.member); }
};
/// `member` asks to leave. It sends this to the council.
struct LeaveRequest {
  Member member;
  /// The epoch of the sender's configuration.
  Epoch epoch = 0;
  static constexpr std::string_view name = "leave-request";
  static constexpr auto fields(auto& m) { return std::tie(m.member, m.epoch); }
};
/// Answers the JoinRequest of a member that can never join; `why` is the reason.
struct JoinRefused {
  std::string why;
  static constexpr std::string_view name = "join-refused";
  static constexpr auto fields(auto& m) { return std::tie(m.why); }
};

/// The messages from one member to another.
using PeerMessages = Concat<TypeList<ConfigurationPtr, CouncilMessage, JoinRequest, LeaveRequest,
                                     EpochProbe, JoinRefused, MemberQuestion, MemberAnswer>,
                            RoleMessages>;
using PeerMessage = AnyOf<PeerMessages>;
/// Immutable and shared: all copies of a packet, including resent ones, point to the same message.
using PeerMessagePtr = std::shared_ptr<const PeerMessage>;

/// Returns `data` for messages that may hold tensors, else `control`.
[[nodiscard]] TrafficClass traffic_class_of(const PeerMessage& peer_message);
[[nodiscard]] PeerMessagePtr make_peer_message(PeerMessage peer_message);
/// Returns the bytes of the tensors in a message.
[[nodiscard]] std::size_t payload_bytes(const PeerMessagePtr& peer_message);

/// A packet with its sender, its receiver and the sender's epoch, as it travels from node to node.
/// A packet with a payload and sequence number 0 belongs to no channel: its sender or its receiver
/// may not be a member.
struct Envelope {
  MemberId from = 0;
  MemberId to = 0;
  /// The sender's epoch; 0 before its first configuration.
  Epoch epoch = 0;
  /// The class of the channel that the packet belongs to.
  TrafficClass traffic_class = TrafficClass::control;
  Packet<PeerMessagePtr> packet;

  [[nodiscard]] bool is_well_formed() const {
    return traffic_class <= TrafficClass::data && (!packet.payload || *packet.payload);
  }
  static constexpr auto fields(auto& m) {
    return std::tie(m.from, m.to, m.epoch, m.traffic_class, m.packet);
  }
};

/// A message between two members of one process, which needs no channel: mailboxes neither lose
/// messages nor change the order of one sender's.
struct LocalMessage {
  MemberId from = 0;
  Incarnation incarnation = 0;
  MemberId to = 0;
  /// The sender's epoch.
  Epoch epoch = 0;
  PeerMessagePtr message;
};

}  // namespace starling::core
