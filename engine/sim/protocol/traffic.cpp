#include "starling/engine/sim/protocol/traffic.hpp"

#include <type_traits>

#include "starling/base/check.hpp"
#include "starling/engine/core/wire_size.hpp"

namespace starling::sim {
namespace {

struct Kind {
  std::string_view name;
  bool is_barrier_control;
};

template <class M>
constexpr std::string_view name_of() {
  if constexpr (std::is_same_v<M, core::ConfigurationPtr>)
    return "configuration";
  else if constexpr (std::is_same_v<M, core::CouncilMessage>)
    return "council";
  else
    return M::name;
}

template <class M>
constexpr bool is_barrier_control() {
  if constexpr (requires { M::is_barrier_control; })
    return M::is_barrier_control;
  else
    return false;
}

template <class... Ms>
constexpr std::array<Kind, message_kinds> kinds_of(core::TypeList<Ms...>) {
  return {Kind{name_of<Ms>(), is_barrier_control<Ms>()}...};
}

/// By alternative of core::PeerMessage.
constexpr std::array<Kind, message_kinds> kinds = kinds_of(core::PeerMessages{});

}  // namespace

std::string_view kind_of_message(std::size_t index) {
  STARLING_CHECK(index < kinds.size());
  return kinds[index].name;
}

std::size_t header_bytes() {
  static const std::size_t bytes = [] {
    constexpr std::size_t prefix = 4;
    constexpr std::size_t job_and_node = 16;
    core::Envelope envelope;
    envelope.packet.to = 0;
    envelope.packet.payload = core::make_peer_message(core::EpochProbe{});
    return prefix + job_and_node + core::wire_size(envelope);
  }();
  return bytes;
}

std::size_t bytes_of(const core::PeerMessage& message, std::size_t element_bytes) {
  return std::visit([&](const auto& m) { return core::wire_size(m, element_bytes); }, message);
}

Traffic total(const TrafficByKind& traffic) {
  Traffic sum;
  for (const Traffic& one : traffic) sum += one;
  return sum;
}

Traffic barrier_control(const TrafficByKind& traffic) {
  Traffic sum;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].is_barrier_control) sum += traffic[i];
  return sum;
}

}  // namespace starling::sim
