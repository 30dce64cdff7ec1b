/// Internal: how a MemberCore runs its worker, its coordinator, its replica and its council, and
/// executes their effects. Only the sources of MemberCore include this file.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

/// True for messages between owners and observers. A member core never sends them, and PeerMessage
/// has no alternative for them.
template <class M>
constexpr bool is_for_observers = std::is_same_v<M, Snapshot> || std::is_same_v<M, RangeState>;

template <class Event>
void MemberCore::run_worker(const MemberContext& context, Event event) {
  if (!worker_) return;
  Effects effects;
  event(*worker_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), worker_key);
}

template <class Event>
void MemberCore::run_coordinator(const MemberContext& context, Event event) {
  if (!coordinator_) return;
  Effects effects;
  event(*coordinator_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), coordinator_key);
}

template <class Event>
bool MemberCore::run_replica(const MemberContext& context, Event event) {
  Effects effects;
  std::vector<std::pair<MemberId, ReplicaMessage>> out;
  const Context core{context.now, context.random, effects};
  const bool is_accepted = event(*replica_, ReplicaContext{core, out});
  for (auto& [to, message] : out)
    std::visit([&, to = to](auto& m) { post(context, to, make_peer_message(std::move(m))); },
               message);
  execute(context, std::move(effects), request_key);
  return is_accepted;
}

template <class Event>
void MemberCore::run_council(const MemberContext& context, Event event) {
  std::vector<CouncilEffect> effects;
  event(council_, CouncilContext{context.now, context.random, effects});
  for (CouncilEffect& effect : effects) {
    if (auto* send = std::get_if<CouncilSend>(&effect)) {
      post(context, send->to, make_peer_message(std::move(send->message)));
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, council_key});
    } else if (auto* why = std::get_if<Fail>(&effect)) {
      fail(context, std::move(why->why));
    } else {
      const ConfigurationPtr former = configuration_;
      adopt(context, std::get<Decided>(effect).configuration);
      announce_configuration(context, former);
    }
  }
}

void MemberCore::execute(const MemberContext& context, Effects effects, TimerKey key) {
  for (Effect& effect : effects) {
    if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(MemberTimer{timer->at, key});
    } else if (auto* send = std::get_if<Send>(&effect)) {
      std::optional<MemberId> to;
      if (const auto* worker = std::get_if<ToWorker>(&send->to)) to = worker->id;
      if (const auto* owner = std::get_if<ToOwner>(&send->to)) to = owner->id;
      if (std::holds_alternative<ToCoordinator>(send->to)) to = configuration_->coordinator;
      if (!to) continue;  // there is no observer, or no coordinator
      std::visit(
          [&]<class M>(M& message) {
            static_assert(std::is_constructible_v<PeerMessage, M> != is_for_observers<M>);
            if constexpr (!is_for_observers<M>)
              post(context, *to, make_peer_message(std::move(message)));
          },
          send->message);
    } else if (auto* plan = std::get_if<Plan>(&effect)) {
      context.out.push_back(*plan);
    } else if (auto* compute = std::get_if<Compute>(&effect)) {
      context.out.push_back(std::move(*compute));
    } else if (auto* done = std::get_if<Done>(&effect)) {
      context.out.push_back(*done);
    } else {
      fail(context, std::move(std::get<Fail>(effect).why));
    }
  }
}

}  // namespace starling::core
