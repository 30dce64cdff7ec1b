/// Internal: how a MemberCore runs its worker, its coordinator, its exchange and its council, and
/// executes their effects. Only the sources of MemberCore include this file.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

inline Effects MemberCore::take_spare(const MemberContext& context) {
  return context.spare == nullptr ? Effects{} : std::exchange(context.spare->role, {});
}

template <class Event>
void MemberCore::run_worker(const MemberContext& context, Event event) {
  if (!worker_) return;
  Effects effects = take_spare(context);
  event(*worker_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), worker_key);
}

template <class Event>
void MemberCore::run_coordinator(const MemberContext& context, Event event) {
  if (!coordinator_) return;
  Effects effects = take_spare(context);
  event(*coordinator_, Context{context.now, context.random, effects});
  execute(context, std::move(effects), coordinator_key);
}

template <class Event>
bool MemberCore::run_exchange(const MemberContext& context, Event event) {
  return std::visit(
      [&]<class E>(E& exchange) {
        using List = ExchangeEffects<typename E::Context::Messages>;
        List effects;
        if (context.spare != nullptr)
          effects = std::exchange(std::get<List>(context.spare->exchange), {});
        const typename E::Context own{context.now, context.random, effects};
        bool result = true;
        if constexpr (std::is_void_v<decltype(event(exchange, own))>)
          event(exchange, own);
        else
          result = event(exchange, own);
        for (auto& effect : effects)
          std::visit([&](auto& e) { execute_exchange(context, e); }, effect);
        effects.clear();
        if (context.spare != nullptr) std::get<List>(context.spare->exchange) = std::move(effects);
        return result;
      },
      exchange_);
}

template <class Messages>
void MemberCore::execute_exchange(const MemberContext& context, SendToMember<Messages>& send) {
  std::visit([&](auto& message) { post(context, send.to, make_peer_message(std::move(message))); },
             send.message);
}

template <class Event>
void MemberCore::run_council(const MemberContext& context, Event event) {
  if (!council_) return;
  std::vector<CouncilEffect> effects;
  event(*council_, CouncilContext{context.now, context.random, effects});
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

}  // namespace starling::core
