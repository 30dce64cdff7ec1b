/// What goes over a simulated network, by kind of message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "starling/engine/core/message.hpp"

namespace starling::sim {

inline constexpr std::size_t message_kinds = std::variant_size_v<core::Message>;

/// "pull", "value", ...: the kind of the alternative at `index` of core::Message.
[[nodiscard]] std::string_view kind_of_message(std::size_t index);

/// A packet's header, and a channel's numbers: see core::Packet.
inline constexpr std::size_t header_bytes = 64;

/// What a message takes on a wire that writes its fields one after another in full width, 4 bytes
/// for each row's number, and `element_bytes` for each element; without header.
[[nodiscard]] std::size_t bytes_of(const core::Message& message, std::size_t element_bytes);

/// Messages between different nodes, as their senders meant them: each once, whatever the network
/// and the channels made of them.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  Traffic& operator+=(const Traffic& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
};

/// By kind, as in core::Message.
using TrafficByKind = std::array<Traffic, message_kinds>;

[[nodiscard]] Traffic total(const TrafficByKind& traffic);
/// Of barrier control only: arrivals and releases, questions for steps, requests for notice, and
/// their answers.
[[nodiscard]] Traffic barrier_control(const TrafficByKind& traffic);

}  // namespace starling::sim
