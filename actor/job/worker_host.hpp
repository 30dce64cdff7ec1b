/// The actor of a worker or a peer. It drives a core (host.hpp).
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "starling/actor/job/host.hpp"
#include "starling/actor/job/step_executor.hpp"
#include "starling/engine/exchange/ownership/peer.hpp"

namespace starling::actor {

/// Returns the worker in a core, which is a core::Worker or a core::Peer.
inline core::Worker& worker_of(core::Worker& worker) { return worker; }
inline core::Worker& worker_of(core::Peer& peer) { return peer.worker(); }

template <class Core>
class WorkerHost;
template <>
struct InterfaceOf<WorkerHost<core::Worker>> {
  using type = WorkerActor;
};
template <>
struct InterfaceOf<WorkerHost<core::Peer>> {
  using type = PeerActor;
};

/// The actor of a worker, or of a peer if the core is a core::Peer. The compute pool computes
/// its updates and sends them to it as messages, so that the actor can answer others meanwhile.
template <class Core>
class WorkerHost : public Host<WorkerHost<Core>> {
  using Super = Host<WorkerHost<Core>>;
  friend Super;

 public:
  using Interface = typename Super::Interface;
  static constexpr std::string_view role = "worker";

  WorkerHost(caf::actor_config& config, JobContextPtr job_context, Core core)
      : Super(config, std::move(job_context), worker_of(core).options().id),
        core_(std::move(core)),
        id_(worker_of(core_).options().id),
        executor_(this->job_context_, id_),
        last_reported_step_(worker_of(core_).step()) {}

  typename Interface::behavior_type make_behavior() override {
    return behavior(std::is_same<Core, core::Worker>{});
  }

 private:
  Core& core() { return core_; }
  core::Worker& worker() { return worker_of(core_); }
  Interface self() { return this; }

  /// Returns the handlers of a worker.
  typename Interface::behavior_type behavior(std::true_type) { return handlers(std::tuple{}); }
  /// Returns the handlers of a peer.
  typename Interface::behavior_type behavior(std::false_type) {
    return handlers(std::tuple_cat(this->forward_all(core::OwnerMessages{}),
                                   std::tuple{[this](actor::read_atom, const core::Pull& pull) {
                                     return this->answer(core_.shard(), pull);
                                   }}));
  }

  /// Returns a worker's handlers, followed by `owner_handlers`.
  template <class OwnerHandlers>
  typename Interface::behavior_type handlers(OwnerHandlers owner_handlers) {
    return std::apply(
        [](auto... handler) { return typename Interface::behavior_type{handler...}; },
        std::tuple_cat(
            this->forward_all(core::WorkerMessages{}),
            std::tuple{this->directory_handler(), [this](actor::start_atom) { on_start(); },
                       [this](const actor::Planned& plan) { on_planned(plan); },
                       [this](const actor::Computed& computed) { on_computed(computed); },
                       [this](const actor::ComputeFailed& failure) { on_failed(failure); },
                       [this](actor::report_credit_atom) { on_report_credit(); },
                       [this](actor::skip_delays_atom) { on_skip_delays(); },
                       [this](actor::timer_atom) { on_tick(); },
                       [this](actor::step_atom) { return worker().step(); }, this->quit_handler()},
            owner_handlers));
  }

  void on_start() {
    this->run([&](const core::Context& context) { worker().start(context); });
  }

  void on_effect(const core::Plan& plan) { executor_.plan(self(), plan.step); }
  void on_effect(core::Compute& compute) { executor_.compute(self(), compute); }
  void on_effect(const core::Done&) { report(); }
  void on_effect(const core::SetTimer& timer) { this->schedule_tick(self(), timer.at); }

  void on_planned(const actor::Planned& plan) {
    this->run(
        [&](const core::Context& context) { worker().on_plan(context, plan.step, plan.wanted); });
  }

  void on_computed(const actor::Computed& computed) {
    const core::Time due_at = executor_.hold_back(computed, this->random_);
    if (!accept_due_update()) this->schedule_tick(self(), due_at);
  }

  void on_skip_delays() {
    executor_.skip_delays();
    accept_due_update();
  }

  void on_tick() {
    if (accept_due_update()) return;
    this->run([&](const core::Context& context) { worker().on_timer(context); });
  }

  /// Passes the computed update to the core if its injected delay is over; returns whether it is.
  bool accept_due_update() {
    const auto computed = executor_.take_due();
    if (!computed) return false;
    this->run([&](const core::Context& context) {
      worker().on_update(context, computed->step, computed->update);
    });
    report_new_step();
    return true;
  }

  /// A message may have completed a step: the last acknowledgement of its update, for example.
  void after_message() { report_new_step(); }

  void on_failed(const actor::ComputeFailed& failure) {
    if (failure.is_fatal)
      return this->report_failure("worker " + std::to_string(id_) + ", step " +
                                  std::to_string(failure.step + 1) + ": " + failure.why);
    this->run([&](const core::Context& context) {
      worker().on_failure(context, failure.step, failure.why);
    });
  }

  void on_report_credit() {
    may_report_ = true;
    report_new_step();
  }

  /// Reports a new step, if the observer has handled the last report.
  void report_new_step() {
    if (may_report_ && worker().step() > last_reported_step_) report();
  }

  void report() {
    if (!this->directory_) return;
    const auto counts = worker().draw_counts();
    actor::Report report{.worker = id_,
                         .step = worker().step(),
                         .samples = worker().samples(),
                         .waited = worker().waited(),
                         .draws = counts.draws,
                         .passes = counts.passes,
                         .is_done = worker().is_done()};
    executor_.fill_report(report);
    // The observer adds up the losses, so only those since the last report are sent.
    const double loss_sum = std::exchange(last_reported_loss_sum_, report.loss_sum);
    const std::uint64_t loss_count = std::exchange(last_reported_loss_count_, report.loss_count);
    report.loss_sum -= loss_sum;
    report.loss_count -= loss_count;
    actor::send(this, this->directory_->observer, report);
    may_report_ = false;
    last_reported_step_ = worker().step();
  }

  Core core_;
  core::MemberId id_;
  StepExecutor<WorkerHost> executor_;
  /// False from each report until the observer returns a report credit.
  bool may_report_ = true;
  /// The step, the sum of the losses and their number in the last report.
  core::Step last_reported_step_;
  double last_reported_loss_sum_ = 0;
  std::uint64_t last_reported_loss_count_ = 0;
};

}  // namespace starling::actor
