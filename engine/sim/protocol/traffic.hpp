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

/// Returns the bytes that the wire adds to each message: a frame's prefix, the numbers of the job
/// and of the sender's node, and the envelope with a channel's numbers (core::Envelope).
[[nodiscard]] std::size_t header_bytes();

/// Returns the bytes of a message on the wire, without those of header_bytes(). Elements of slices
/// without values count `element_bytes` each.
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
/// Sums barrier control only: arrivals and releases, step queries and their answers, notify
/// requests and notices.
[[nodiscard]] Traffic barrier_control(const TrafficByKind& traffic);

}  // namespace starling::sim
