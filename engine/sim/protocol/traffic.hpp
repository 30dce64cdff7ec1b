/// Messages and bytes that go over a simulated network, by kind of message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "starling/engine/core/message.hpp"

namespace starling::sim {

inline constexpr std::size_t message_kinds = std::variant_size_v<core::Message>;

/// Returns "pull", "value", ...: the kind of the alternative at `index` of core::Message.
[[nodiscard]] std::string_view kind_of_message(std::size_t index);

/// Bytes of a packet's header, with a channel's numbers: see core::Packet.
inline constexpr std::size_t header_bytes = 64;

/// Returns the bytes of a message, without header, on a wire that writes its fields one after
/// another in full width, with 4 bytes for each row's number and `element_bytes` for each element.
[[nodiscard]] std::size_t bytes_of(const core::Message& message, std::size_t element_bytes);

/// Messages between different nodes, as their senders meant them: each counts once, however often
/// the network and the channels carry it.
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
/// Sums barrier control only: arrivals and releases, step queries, notify requests, and their
/// answers.
[[nodiscard]] Traffic barrier_control(const TrafficByKind& traffic);

}  // namespace starling::sim
