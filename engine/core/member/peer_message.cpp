#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {
namespace {

template <class M>
std::size_t bytes_in(const M&) {
  return 0;
}
std::size_t bytes_in(const Value& value) { return value.value.bytes().size(); }
std::size_t bytes_in(const Push& push) { return push.update.bytes().size(); }
std::size_t bytes_in(const Forward& forward) { return forward.push ? bytes_in(*forward.push) : 0; }
std::size_t bytes_in(const Install& install) {
  std::size_t bytes = install.state->value.bytes().size() + install.state->slots.bytes().size();
  for (const Push& push : install.state->gathered) bytes += bytes_in(push);
  return bytes;
}

template <class M>
constexpr bool may_hold_tensors = std::is_same_v<M, Value> || std::is_same_v<M, Push> ||
                                  std::is_same_v<M, Forward> || std::is_same_v<M, Install>;

}  // namespace

TrafficClass traffic_class_of(const PeerMessage& peer_message) {
  return std::visit(
      []<class M>(const M&) {
        return may_hold_tensors<M> ? TrafficClass::data : TrafficClass::control;
      },
      peer_message);
}

std::size_t payload_bytes(const PeerMessagePtr& peer_message) {
  return std::visit([](const auto& message) { return bytes_in(message); }, *peer_message);
}

}  // namespace starling::core
