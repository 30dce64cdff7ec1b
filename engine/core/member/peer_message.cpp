#include "starling/engine/core/member/peer_message.hpp"

#include <utility>

#include "starling/engine/core/wire_size.hpp"

namespace starling::core {

TrafficClass traffic_class_of(const PeerMessage& peer_message) {
  return std::visit(
      []<class M>(const M& message) {
        // An answer without values does not wait behind tensors.
        if constexpr (std::is_same_v<M, MemberAnswer>)
          return std::visit(
              []<class A>(const A&) {
                return holds_tensors<A> ? TrafficClass::data : TrafficClass::control;
              },
              message.answer);
        else
          return holds_tensors<M> ? TrafficClass::data : TrafficClass::control;
      },
      peer_message);
}

PeerMessagePtr make_peer_message(PeerMessage peer_message) {
  return std::make_shared<const PeerMessage>(std::move(peer_message));
}

std::size_t payload_bytes(const PeerMessagePtr& peer_message) {
  return tensor_bytes(*peer_message);
}

}  // namespace starling::core
