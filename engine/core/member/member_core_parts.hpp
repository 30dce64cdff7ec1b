/// Internal: how a MemberCore runs its role and its council, and executes their effects. Only the
/// sources of MemberCore include this file.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/member/member_core.hpp"

namespace starling::core {

template <class Event>
bool MemberCore::run_role(const MemberContext& context, Event event) {
  return std::visit(
      [&]<class R>(R& role) {
        using Effects = typename R::Context::Effects;
        EffectScratch* scratch = context.scratch;
        Effects effects;
        if (scratch != nullptr) effects = std::exchange(std::get<Effects>(scratch->effects), {});
        const typename R::Context own{
            context.now, context.random, effects,
            scratch != nullptr ? &std::get<typename R::Scratch>(scratch->roles) : nullptr};
        bool result = true;
        if constexpr (std::is_void_v<decltype(event(role, own))>)
          event(role, own);
        else
          result = event(role, own);
        for (auto& effect : effects) std::visit([&](auto& e) { execute(context, e); }, effect);
        effects.clear();
        if (scratch != nullptr) std::get<Effects>(scratch->effects) = std::move(effects);
        return result;
      },
      role_);
}

template <class Messages>
void MemberCore::execute(const MemberContext& context, SendToMember<Messages>& send) {
  std::visit([&](auto& message) { post(context, send.to, make_peer_message(std::move(message))); },
             send.message);
}

template <class Messages>
void MemberCore::execute(const MemberContext& context, SendToAll<Messages>& send) {
  const PeerMessagePtr peer_message =
      std::visit([](auto& message) { return make_peer_message(std::move(message)); }, send.message);
  for (const Member& member : configuration_->members) post(context, member.id, peer_message);
}

template <class... Outputs>
void MemberCore::execute(const MemberContext& context, std::variant<Outputs...>& output) {
  std::visit([&](auto& one) { context.out.push_back(std::move(one)); }, output);
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
      adopt_decided(context, std::get<Decided>(effect).configuration);
    }
  }
}

}  // namespace starling::core
