/// Internal: the messages of a Protocol: how they leave a node, pass the network, and reach a core.
/// Only protocol.cpp includes it.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::sim {

template <class T>
void Protocol<T>::send(NodeId from, core::Send mail) {
  const NodeId to = node_of(mail.to);
  if (to == observer() || mourned_.contains({from, to})) return;
  const std::size_t bytes = bytes_of(mail.message, sizeof(T));
  if (from != to) traffic_[mail.message.index()] += {1, bytes + header_bytes()};
  if (!channels_ || from == to) {
    for (const Time at : network_.send(now(), from, to, bytes + header_bytes()))
      queue_.push(at, Arrival{mail});
    return;
  }
  core::ChannelEffects<core::Send> effects;
  STARLING_CHECK(channel(from, to).send({now(), effects}, std::move(mail)));
  execute(from, to, effects);
}

template <class T>
typename Protocol<T>::Channel& Protocol<T>::channel(NodeId node, NodeId other) {
  return channel_of_.try_emplace({node, other}, 0U, 0U, options_.channel).first->second;
}

template <class T>
void Protocol<T>::execute(NodeId node, NodeId other, core::ChannelEffects<core::Send>& effects) {
  for (auto& effect : effects) {
    if (auto* out = std::get_if<core::Transmit<core::Send>>(&effect)) {
      const auto& payload = out->packet.payload;
      const std::size_t bytes = payload ? bytes_of(payload->message, sizeof(T)) : 0;
      for (const Time at : network_.send(now(), node, other, bytes + header_bytes()))
        queue_.push(at, PacketArrival{node, other, out->packet});
    } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
      queue_.push(timer->at, ChannelTimer{node, other});
    } else if (const auto* in = std::get_if<core::Deliver<core::Send>>(&effect)) {
      deliver(in->payload);
    }
  }
}

template <class T>
void Protocol<T>::happen(PacketArrival& arrival) {
  const auto& [from, to, packet] = arrival;
  if (mourned_.contains({to, from}) || (to < dead_.size() && dead_[to])) return;
  core::ChannelEffects<core::Send> effects;
  channel(to, from).on({now(), effects}, std::move(arrival.packet));
  execute(to, from, effects);
}

template <class T>
void Protocol<T>::happen(ChannelTimer& timer) {
  const auto& [node, other] = timer;
  if (mourned_.contains({node, other}) || (node < dead_.size() && dead_[node])) return;
  core::ChannelEffects<core::Send> effects;
  channel(node, other).on_timer({now(), effects});
  execute(node, other, effects);
}

template <class T>
void Protocol<T>::deliver(const core::Send& mail) {
  const auto hand = [&](auto& core, const core::Context& context) {
    std::visit(
        [&]<class M>(const M& message) {
          constexpr bool takes = core::Takes<std::decay_t<decltype(core)>, M>;
          STARLING_CHECK(takes);
          if constexpr (takes) core.on(context, message);
        },
        mail.message);
  };
  if (const auto* to_worker = std::get_if<core::ToWorker>(&mail.to)) {
    run_worker(to_worker->id, hand);
  } else if (const auto* owner = std::get_if<core::ToOwner>(&mail.to)) {
    if (peers_.empty())
      play(node_of(mail.to), shards_[owner->id], owner_random_, hand);
    else
      play(owner->id, peers_[owner->id], random_[owner->id], hand);
  } else if (std::holds_alternative<core::ToCoordinator>(mail.to)) {
    play(node_of(mail.to), *coordinator_, coordinator_random_, hand);
  }
}

}  // namespace starling::sim
