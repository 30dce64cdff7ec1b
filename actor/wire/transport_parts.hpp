/// Internal to Transport: what waits to be done in its thread, its connections, and the options of
/// its inbox. Plain values.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <variant>

#include "starling/actor/wire/inbox.hpp"
#include "starling/actor/wire/listener.hpp"
#include "starling/actor/wire/outbound_connection.hpp"
#include "starling/actor/wire/transport.hpp"

namespace starling::wire {

struct SendCommand {
  Peer peer;
  TrafficClass traffic_class;
  Frame frame;
};
struct ForgetCommand {
  Peer peer;
};
using Command = std::variant<SendCommand, ForgetCommand>;

/// The connections to one peer; null for a traffic class that is not connected.
struct PeerConnections {
  std::array<std::unique_ptr<OutboundConnection>, 3> by_class;
  std::chrono::steady_clock::time_point last_used_at;
};

/// The most connections from peers whose handshake is not complete.
inline constexpr std::size_t handshakes_max = 1024;

inline InboxOptions inbox_options(const TransportOptions& options) {
  const std::size_t descriptors = descriptors_max();
  InboxOptions inbox;
  inbox.listen = options.listen;
  if (options.keys) inbox.rules.secret_key = options.keys->secret_key;
  inbox.rules.admits = options.admits;
  inbox.rules.part_bytes_max = options.part_bytes_max;
  inbox.unfinished_bytes_max = options.unfinished_bytes_max;
  inbox.open_max = std::min(options.inbound_max, descriptors / 2);
  inbox.handshakes_max = std::clamp<std::size_t>(descriptors / 4, 1, handshakes_max);
  return inbox;
}

}  // namespace starling::wire
