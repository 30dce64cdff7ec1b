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
template <class List, class... Signatures>
struct takes;
template <template <class...> class List, class... Ms, class... Signatures>
struct takes<List<Ms...>, Signatures...> {
  using type =
      caf::typed_actor<typename handler<void(Ms)>::type..., typename handler<Signatures>::type...>;
  template <class First>
  using also = typename First::template extend<typename handler<void(Ms)>::type...,
                                               typename handler<Signatures>::type...>;
};
}  // namespace detail

/// A handle to an actor that answers the given signatures, written `Result(Arguments...)`.
template <class... Signatures>
using Interface = caf::typed_actor<typename detail::handler<Signatures>::type...>;

/// A handle to an actor that takes all messages of a list and answers the given signatures.
template <class List, class... Signatures>
using Takes = typename detail::takes<List, Signatures...>::type;

/// The interface First, which also takes all messages of a list and answers the given signatures.
template <class First, class List, class... Signatures>
using AlsoTakes = typename detail::takes<List, Signatures...>::template also<First>;

/// The return type of a handler that may refuse a request.
template <class T>
using Answer = caf::result<T>;

/// Refuses a request; the requester gets `why` as its error.
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

namespace detail {

/// Runs, on this thread, an actor that a message sent from this thread has woken.
class ThisThread final : public caf::execution_unit {
 public:
  explicit ThisThread(caf::actor_system& system) : caf::execution_unit(&system) {}

  /// Keeps the first actor, which the message was sent to, for run(). Gives every later one, which
  /// the first one has woken, to the scheduler.
  void exec_later(caf::resumable* woken) override {
    if (!std::exchange(has_woken_, true))
      woken_ = woken;
    else
      system().scheduler().enqueue(woken);
  }

  void run(std::size_t messages_max) {
    if (woken_ == nullptr) return;
    if (woken_->resume(this, messages_max) == caf::resumable::resume_later)
      system().scheduler().enqueue(woken_);
    else
      caf::intrusive_ptr_release(woken_);
  }

 private:
  caf::resumable* woken_ = nullptr;
  bool has_woken_ = false;
};

}  // namespace detail

/// Sends from a thread that runs no actor. If the receiver sleeps, runs it on this thread for up to
/// 4 messages, so that no other thread has to wake up. The caller must hold no lock that the
/// actor's handlers take.
template <class Handle, class... Ts>
void post_and_run(const Handle& to, Ts&&... xs) {
  constexpr std::size_t messages_max = 4;
  auto* const actor = caf::actor_cast<caf::abstract_actor*>(to);
  detail::ThisThread here{actor->home_system()};
  actor->eq_impl(caf::make_message_id(), nullptr, &here, std::forward<Ts>(xs)...);
  here.run(messages_max);
}

/// A scope in which a thread that runs no actor spawns actors or asks them. CAF 0.17 has such a
/// thread hold the system's logger until the thread ends, and the system's end waits for the
/// logger; the end of the scope releases it.
class Visit {
 public:
  Visit() = default;
  ~Visit() { caf::logger::set_current_actor_system(nullptr); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

/// Calls `callback(reason)` outside any actor when `child` ends, for whatever reason.
template <class Handle, class F>
void when_ended(const Handle& child, F callback) {
  caf::actor_cast<caf::abstract_actor*>(child)->attach_functor(
      [callback = std::move(callback)](const caf::error& reason) { callback(reason); });
}

}  // namespace starling::actor
