/// The base class of actors that drive a core, which is a state machine of engine/core without
/// threads or a clock: it passes messages to the core as events, and executes the effects that the
/// core returns. Used by the actors of jobs only.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "starling/actor/compute/compute_pool.hpp"
#include "starling/actor/compute/task.hpp"
#include "starling/actor/interfaces.hpp"
#include "starling/base/check.hpp"
#include "starling/base/distributions/distribution.hpp"
#include "starling/base/random.hpp"
#include "starling/engine/core/effect.hpp"

namespace starling::actor {

/// The state that the actors of one job share. It outlives them all.
struct JobContext {
  std::shared_ptr<Task> task;
  std::unique_ptr<ComputePool> pool;
  /// The injected delay of each step.
  Distribution delay;
  /// By worker, the factor by which its steps are slowed down; 1 is full speed.
  std::vector<double> slowdown_factors;
  std::uint64_t seed = 1;
  /// The clock of the actor system and its timers; set before the first actor is spawned.
  const caf::actor_clock* clock = nullptr;
  /// When the job started, by `clock`.
  caf::actor_clock::time_point start;

  /// The time since the job started.
  [[nodiscard]] core::Time now() const { return clock->now() - start; }
};
using JobContextPtr = std::shared_ptr<JobContext>;

namespace detail {

/// Sends a core's message to the actor that it is addressed to.
template <class Self, class M>
void deliver(Self* self, const actor::Directory& directory, const core::Address& to, M&& message) {
  using Message = std::remove_cvref_t<M>;
  if (const auto* worker = std::get_if<core::ToWorker>(&to)) {
    if constexpr (core::IsIn<Message, core::WorkerMessages>)
      return actor::send(self, directory.workers[worker->id], std::forward<M>(message));
  } else if (const auto* owner = std::get_if<core::ToOwner>(&to)) {
    if constexpr (core::IsIn<Message, core::OwnerMessages>)
      return actor::send(self, directory.owners[owner->id], std::forward<M>(message));
  } else if (std::holds_alternative<core::ToCoordinator>(to)) {
    if constexpr (core::IsIn<Message, core::CoordinatorMessages>)
      return actor::send(self, directory.coordinator, std::forward<M>(message));
  } else {
    if constexpr (core::IsIn<Message, core::ObserverMessages>)
      return actor::send(self, directory.observer, std::forward<M>(message));
  }
  STARLING_CHECK(false && "the addressed actor does not take this message");
}

}  // namespace detail

/// `InterfaceOf<Actor>::type` is the typed interface of the class `Actor`; each such class
/// specialises it. A template has the class as its argument and not the interface, because the name
/// of an interface lists all signatures, and would be part of the name of each function and lambda
/// in the template.
template <class Actor>
struct InterfaceOf;

/// Base class of `Derived`, an actor with the typed interface InterfaceOf<Derived>. Executes the
/// effects Send and Fail; passes all others to Derived::on_effect(effect).
template <class Derived>
class Host : public InterfaceOf<Derived>::type::base {
 public:
  using Interface = typename InterfaceOf<Derived>::type;

  /// The actor draws its random numbers from stream number `random_stream` of the job's seed.
  Host(caf::actor_config& config, JobContextPtr job_context, std::uint64_t random_stream)
      : Interface::base(config),
        job_context_(std::move(job_context)),
        random_(Random::stream(job_context_->seed, random_stream)) {
    this->set_exception_handler([this](const std::exception_ptr& thrown) -> caf::error {
      const auto fault = run_catching([&] { std::rethrow_exception(thrown); });
      report_failure(std::string{Derived::role} + ": " + fault.value_or(""));
      return caf::exit_reason::user_shutdown;
    });
  }

  /// Releases the directory: its actors refer to each other, and the cycle would never be freed.
  void on_exit() override { directory_.reset(); }

 protected:
  /// Sends a timer_atom to `self`, which is this actor, at `time`.
  template <class Handle>
  void schedule_tick(const Handle& self, core::Time time) {
    const auto delay = std::max(core::Time{0}, time - job_context_->now());
    // Rounded up, because CAF counts microseconds, and a tick that comes too early has no effect.
    actor::send_later(this, self, std::chrono::ceil<std::chrono::microseconds>(delay),
                      actor::timer_atom_v);
  }

  /// Runs one event of a core: `event(context)`, then its effects.
  template <class Event>
  void run(Event event) {
    core::Effects effects = std::move(spare_effects_);
    event(core::Context{job_context_->now(), random_, effects});
    for (core::Effect& effect : effects) std::visit([&](auto& e) { execute(e); }, effect);
    effects.clear();
    spare_effects_ = std::move(effects);
  }

  /// Returns a handler that passes message M to Derived::core(), and then calls
  /// Derived::after_message() if there is one.
  template <class M>
  auto forward() {
    return [this](const M& message) {
      run([&](const core::Context& context) { derived().core().on(context, message); });
      if constexpr (requires { derived().after_message(); }) derived().after_message();
    };
  }

  /// Returns a tuple with the handler forward<M>() for each message M of the list.
  template <class... Ms>
  auto forward_all(core::MessageList<Ms...>) {
    return std::tuple{forward<Ms>()...};
  }

  /// Answers a read_atom: reads the present values from `shard`, or refuses.
  static actor::Answer<core::Value> answer(auto& shard, const core::Pull& pull) {
    if (!shard.is_valid(pull))
      return actor::refusal("range " + std::to_string(pull.range) +
                            ": not held here, or without such rows");
    return shard.read(pull);
  }

  /// Returns a handler that stores the directory of the job's actors.
  auto directory_handler() {
    return [this](const actor::DirectoryPtr& directory) { directory_ = directory; };
  }

  /// Returns a handler that ends the actor.
  auto quit_handler() {
    return [this](actor::quit_atom) { this->quit(); };
  }

  void report_failure(std::string why) {
    if (directory_) actor::send(this, directory_->observer, actor::Failure{std::move(why)});
  }

  JobContextPtr job_context_;
  Random random_;
  actor::DirectoryPtr directory_;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  void execute(core::Send& effect) {
    if (!directory_) return;
    std::visit(
        [&]<class M>(M& message) {
          detail::deliver(&derived(), *directory_, effect.to, std::move(message));
        },
        effect.message);
  }
  void execute(core::Fail& effect) { report_failure(effect.why); }
  template <class Effect>
  void execute(Effect& effect) {
    derived().on_effect(effect);
  }

  /// An empty list whose memory the next event uses again.
  core::Effects spare_effects_;
};

}  // namespace starling::actor
