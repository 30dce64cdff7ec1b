/// How Training passes events to its parts. Only the files that call Training::on include this:
/// nothing else needs these templates, which take long to compile.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "starling/engine/core/training/training.hpp"

namespace starling::core {

template <class Part, class Event>
void Training::run(const Context& context, Part& part, std::uint32_t key, Event event) {
  Effects effects =
      context.scratch == nullptr ? Effects{} : std::exchange(context.scratch->effects, {});
  event(part, core::Context{context.now, context.random, effects});
  execute(context, std::move(effects), key);
}

template <class Event>
void Training::run_worker(const Context& context, Event event) {
  if (worker_) run(context, *worker_, worker_key, event);
}

template <class Event>
void Training::run_coordinator(const Context& context, Event event) {
  if (coordinator_) run(context, *coordinator_, coordinator_key, event);
}

template <class M>
void Training::execute(const Context& context, SendToMember<M>& send) {
  std::visit([&](auto& message) { context.send(send.to, std::move(message)); }, send.message);
}

template <class Event>
bool Training::run_exchange(const Context& context, Event event) {
  return std::visit(
      [&]<class E>(E& exchange) {
        using List = ExchangeEffects<typename E::Context::Messages>;
        List effects;
        if (context.scratch != nullptr)
          effects = std::exchange(std::get<List>(context.scratch->exchange), {});
        const typename E::Context own{context.now, context.random, effects};
        bool result = true;
        if constexpr (std::is_void_v<decltype(event(exchange, own))>)
          event(exchange, own);
        else
          result = event(exchange, own);
        for (auto& effect : effects) std::visit([&](auto& e) { execute(context, e); }, effect);
        effects.clear();
        if (context.scratch != nullptr)
          std::get<List>(context.scratch->exchange) = std::move(effects);
        return result;
      },
      exchange_);
}

template <class M>
requires IsIn<M, ExchangeMessages>
bool Training::on(const Context& context, MemberId from, const std::shared_ptr<const M>& m) {
  return run_exchange(context, [&]<class E>(E& exchange, const auto& c) {
    if constexpr (!IsIn<M, typename E::Messages>)
      return true;
    else if constexpr (requires { exchange.on(c, from, m); })
      return exchange.on(c, from, m);
    else
      return exchange.on(c, from, *m);
  });
}

template <class M>
requires IsIn<M, TypeList<Proceed, Stop, HandIn, StepQuery, StepAnswer, NotifyRequest, Notice>>
bool Training::on(const Context& context, MemberId, const M& message) {
  run_worker(context, [&](auto& worker, const auto& c) { worker.on(c, message); });
  return true;
}

template <class M>
requires IsIn<M, TypeList<Arrived, Ended, BatchDone, WorkerStatus>>
bool Training::on(const Context& context, MemberId, const M& message) {
  if constexpr (std::is_same_v<M, Ended>)
    run_exchange(context, [&](auto& exchange, const auto& c) { exchange.on(c, message); });
  run_coordinator(context, [&](auto& coordinator, const auto& c) { coordinator.on(c, message); });
  return true;
}

}  // namespace starling::core
