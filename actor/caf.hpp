/// The only file outside tests/ that includes headers of the C++ Actor Framework (CAF). It is
/// written for CAF 0.17.6, and wraps the calls that differ in later versions.
#pragma once

// CAF's headers cause these warnings.
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

/// A handle to an actor that accepts messages of the given signatures, written
/// `Reply(Arguments...)`.
template <class... Signatures>
using Interface = caf::typed_actor<typename detail::handler<Signatures>::type...>;

/// The return type of a handler that may refuse a request.
template <class T>
using Answer = caf::result<T>;

/// Refuses a request; the requester gets `why` as its error.
inline caf::error refusal(std::string why) {
  return caf::make_error(caf::sec::invalid_argument, std::move(why));
}

/// Returns why a request failed: the text of its refusal, or CAF's name of the fault.
inline std::string reason_of(const caf::error& error) {
  if (error.context().match_elements<std::string>()) return error.context().get_as<std::string>(0);
  return caf::to_string(error);
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

/// Runs an actor on the calling thread, if a message from this thread has woken it.
class CallingThread final : public caf::execution_unit {
 public:
  explicit CallingThread(caf::actor_system& system) : caf::execution_unit(&system) {}

  /// CAF calls this function for each actor that wakes. The first actor is the receiver of the
  /// message; run() runs it. The receiver wakes the other actors while it runs; they go to the
  /// scheduler.
  void exec_later(caf::resumable* woken) override {
    if (!std::exchange(has_receiver_, true))
      receiver_ = woken;
    else
      system().scheduler().enqueue(woken);
  }

  void run(std::size_t messages_max) {
    if (receiver_ == nullptr) return;
    if (receiver_->resume(this, messages_max) == caf::resumable::resume_later)
      system().scheduler().enqueue(receiver_);
    else
      caf::intrusive_ptr_release(receiver_);
  }

 private:
  caf::resumable* receiver_ = nullptr;
  bool has_receiver_ = false;
};

}  // namespace detail

/// Sends from a thread that runs no actor. If the receiver sleeps, runs it on this thread for up to
/// 4 messages, which saves waking another thread. The caller must hold no lock that the receiver's
/// handlers take.
template <class Handle, class... Ts>
void post_and_run(const Handle& to, Ts&&... xs) {
  constexpr std::size_t messages_max = 4;
  auto* const actor = caf::actor_cast<caf::abstract_actor*>(to);
  detail::CallingThread thread{actor->home_system()};
  actor->eq_impl(caf::make_message_id(), nullptr, &thread, std::forward<Ts>(xs)...);
  thread.run(messages_max);
}

/// A scope in which a thread that runs no actor makes an actor system, spawns actors or sends them
/// requests. In CAF 0.17 such a thread holds the actor system's logger until the thread ends, and
/// the destructor of the system waits for the logger. The end of the scope releases the logger.
class CafThreadScope {
 public:
  CafThreadScope() = default;
  ~CafThreadScope() { caf::logger::set_current_actor_system(nullptr); }
  CafThreadScope(const CafThreadScope&) = delete;
  CafThreadScope& operator=(const CafThreadScope&) = delete;
};

/// Calls `callback(reason)`, outside any actor, when `child` ends for any reason.
template <class Handle, class F>
void when_ended(const Handle& child, F callback) {
  caf::actor_cast<caf::abstract_actor*>(child)->attach_functor(
      [callback = std::move(callback)](const caf::error& reason) { callback(reason); });
}

}  // namespace starling::actor
