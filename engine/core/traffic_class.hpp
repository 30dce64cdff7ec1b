/// The classes of traffic between two members, and between two nodes.
#pragma once

#include <cstdint>

namespace starling::core {

/// Each class has a channel and a socket of its own, so that a burst of tensors does not delay a
/// step or a vote. Messages of one class arrive in the order in which they were sent.
enum class TrafficClass : std::uint8_t {
  /// Messages without tensors.
  control,
  /// Messages that may hold tensors.
  data,
  /// Certificates for nodes that do not know the sender yet, encrypted with a key that every key
  /// file of the cluster holds. Only nodes send them, never members.
  handshake,
};
/// The last enumerator; the decoder refuses higher numbers (base/fields.hpp).
constexpr TrafficClass last_of(TrafficClass) { return TrafficClass::handshake; }

}  // namespace starling::core
