/// The classes of traffic between two members, and between two nodes.
#pragma once

#include <cstdint>

namespace starling::core {

/// Each class has a channel and a socket of its own, so that a burst of tensors does not delay a
/// step or a vote. Order is kept within a class.
enum class TrafficClass : std::uint8_t {
  /// Messages without tensors.
  control,
  /// Messages that may hold tensors.
  data,
  /// Certificates for nodes that do not know the sender yet, encrypted with a key that every key
  /// file
  /// of the cluster holds. Members send none.
  handshake,
};
constexpr TrafficClass last_of(TrafficClass) { return TrafficClass::handshake; }

}  // namespace starling::core
