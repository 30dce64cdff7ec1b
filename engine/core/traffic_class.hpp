/// The classes of traffic between two members, and between two nodes.
#pragma once

#include <cstdint>

namespace starling::core {

/// Each class goes by a channel and a socket of its own, in order, so that no burst of tensors
/// keeps a step or a vote waiting.
enum class TrafficClass : std::uint8_t {
  control,
  /// Messages that may hold tensors.
  data,
  /// Certificates, under a key that every key file of the cluster holds, for nodes that do not know
  /// the sender yet. Members send none.
  handshake,
};
constexpr TrafficClass last_of(TrafficClass) { return TrafficClass::handshake; }

}  // namespace starling::core
