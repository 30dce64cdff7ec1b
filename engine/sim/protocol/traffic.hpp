/// Counts the messages and bytes that go over a simulated network, by kind of message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "starling/engine/core/member/peer_message.hpp"

namespace starling::sim {

inline constexpr std::size_t message_kinds = std::variant_size_v<core::PeerMessage>;

/// Returns the name of the kind of message at `index` in core::PeerMessage: "pull", "value", ...
[[nodiscard]] std::string_view kind_of_message(std::size_t index);

/// Returns the number of bytes that the wire adds to each message: a frame's prefix, the ids of the
/// job and of the sender's node, and the envelope with a channel's sequence numbers
/// (core::Envelope).
[[nodiscard]] std::size_t header_bytes();

/// Returns the number of bytes of a message on the wire, without header_bytes(). If a slice of the
/// message has no values, each of its elements counts as `element_bytes`.
[[nodiscard]] std::size_t bytes_of(const core::PeerMessage& message, std::size_t element_bytes);

/// A number of messages between different members, and their size. A message counts once, even if
/// channels or the network repeat it.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  Traffic& operator+=(const Traffic& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
};

/// By kind of message, in the order of core::PeerMessage.
using TrafficByKind = std::array<Traffic, message_kinds>;

/// Returns the traffic of messages of type M.
template <class M>
[[nodiscard]] const Traffic& traffic_of(const TrafficByKind& traffic) {
  return traffic[core::PeerMessage{M{}}.index()];
}

[[nodiscard]] Traffic total(const TrafficByKind& traffic);
/// Returns the total of the messages with `is_barrier_control`, such as Arrived and StepQuery.
[[nodiscard]] Traffic barrier_control(const TrafficByKind& traffic);

}  // namespace starling::sim
