/// How a Protocol sends messages over the network and delivers them to cores.
#include <type_traits>
#include <utility>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/engine/sim/protocol/protocol_events.hpp"

namespace starling::sim {

void Protocol::send(NodeId from, core::Send addressed) {
  const NodeId to = node_of(addressed.to);
  if (to == observer() || known_deaths_.contains({from, to})) return;
  const std::size_t bytes = bytes_of(addressed.message, job_.applier->element_bytes());
  if (from != to) traffic_[addressed.message.index()] += {1, bytes + header_bytes()};
  if (!channels_ || from == to) {
    for (const Time at : network_.send(now(), from, to, bytes + header_bytes()))
      queue_.push(at, Arrival{addressed});
    return;
  }
  core::ChannelEffects<core::Send> effects;
  STARLING_CHECK(channel(from, to).send({now(), effects}, std::move(addressed)));
  execute(from, to, effects);
}

Protocol::Channel& Protocol::channel(NodeId node, NodeId other) {
  return channel_of_.try_emplace({node, other}, 0U, 0U, options_.channel).first->second;
}

void Protocol::execute(NodeId node, NodeId other, core::ChannelEffects<core::Send>& effects) {
  for (auto& effect : effects) {
    if (auto* out = std::get_if<core::Transmit<core::Send>>(&effect)) {
      const auto& payload = out->packet.payload;
      const std::size_t bytes =
          payload ? bytes_of(payload->message, job_.applier->element_bytes()) : 0;
      for (const Time at : network_.send(now(), node, other, bytes + header_bytes()))
        queue_.push(at, PacketArrival{node, other, out->packet});
    } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
      queue_.push(timer->at, ChannelTimer{node, other});
    } else if (const auto* in = std::get_if<core::Deliver<core::Send>>(&effect)) {
      deliver(in->payload);
    }
  }
}

void Protocol::handle(PacketArrival& arrival) {
  const auto& [from, to, packet] = arrival;
  if (known_deaths_.contains({to, from}) || (to < dead_.size() && dead_[to])) return;
  core::ChannelEffects<core::Send> effects;
  channel(to, from).on({now(), effects}, std::move(arrival.packet));
  execute(to, from, effects);
}

void Protocol::handle(ChannelTimer& timer) {
  const auto& [node, other] = timer;
  if (known_deaths_.contains({node, other}) || (node < dead_.size() && dead_[node])) return;
  core::ChannelEffects<core::Send> effects;
  channel(node, other).on_timer({now(), effects});
  execute(node, other, effects);
}

void Protocol::deliver(const core::Send& addressed) {
  const auto deliver_to_core = [&](auto& core, const core::Context& context) {
    std::visit(
        [&]<class M>(const M& message) {
          constexpr bool is_accepted = core::Handles<std::decay_t<decltype(core)>, M>;
          STARLING_CHECK(is_accepted);
          if constexpr (is_accepted) core.on(context, message);
        },
        addressed.message);
  };
  if (const auto* to_worker = std::get_if<core::ToWorker>(&addressed.to)) {
    run_worker(to_worker->id, deliver_to_core);
  } else if (const auto* owner = std::get_if<core::ToOwner>(&addressed.to)) {
    if (peers_.empty())
      run_event(node_of(addressed.to), shards_[owner->id], owner_random_, deliver_to_core);
    else
      run_event(owner->id, peers_[owner->id], random_[owner->id], deliver_to_core);
  } else if (std::holds_alternative<core::ToCoordinator>(addressed.to)) {
    run_event(node_of(addressed.to), *coordinator_, coordinator_random_, deliver_to_core);
  }
}

}  // namespace starling::sim
