/// The one seam to the C++ Actor Framework: written for 0.17.6, with the differences of later
/// generations behind it. Nothing outside actor/ includes a CAF header directly.
#pragma once

// CAF's headers are not clean under our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <caf/all.hpp>
#pragma GCC diagnostic pop

#include <chrono>
#include <string>
#include <utility>

namespace starling::actor {

namespace detail {
template <class Signature>
struct handler;
template <class R, class... As>
struct handler<R(As...)> {
  using type = typename caf::replies_to<As...>::template with<R>;
};
}  // namespace detail

/// A handle to an actor that answers the given signatures, written `Result(Arguments...)`.
template <class... Signatures>
using Interface = caf::typed_actor<typename detail::handler<Signatures>::type...>;

/// One more signature, to extend an interface with.
template <class Signature>
using Handles = typename detail::handler<Signature>::type;

/// What a handler returns that may refuse a question.
template <class T>
using Answer = caf::result<T>;

/// Refuses a question; who asked gets `why` as its error.
inline caf::error refusal(std::string why) {
  return caf::make_error(caf::sec::invalid_argument, std::move(why));
}

/// Sends from inside an actor.
template <class Self, class Handle, class... Ts>
void send(Self* self, const Handle& to, Ts&&... xs) {
  self->send(to, std::forward<Ts>(xs)...);
}

/// Sends from inside an actor, after `delay`.
template <class Self, class Handle, class... Ts>
void send_later(Self* self, const Handle& to, std::chrono::nanoseconds delay, Ts&&... xs) {
  self->delayed_send(to, delay, std::forward<Ts>(xs)...);
}

/// Sends from any thread.
template <class Handle, class... Ts>
void post(const Handle& to, Ts&&... xs) {
  caf::anon_send(to, std::forward<Ts>(xs)...);
}

/// Calls `callback(reason)` in no actor's name when `child` ends, however it ends.
template <class Handle, class F>
void when_ended(const Handle& child, F callback) {
  caf::actor_cast<caf::abstract_actor*>(child)->attach_functor(
      [callback = std::move(callback)](const caf::error& reason) { callback(reason); });
}

}  // namespace starling::actor
