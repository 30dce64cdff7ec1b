/// The actor around a worker's core, alone or as half of a peer.
#pragma once

#include <algorithm>
#include <exception>

#include "starling/base/straggler.hpp"
#include "starling/engine/live/host.hpp"

namespace starling::live {

/// `Core` is core::Worker or core::Peer<T>; `worker_of(core)` finds the worker in it.
inline core::Worker& worker_of(core::Worker& worker) { return worker; }
template <class Peer>
core::Worker& worker_of(Peer& peer) {
  return peer.worker();
}

/// Everything a worker actor does: gradients run on the compute pool and come back as messages, so
/// the actor itself is always free to answer.
template <class Interface, class Core>
class WorkerHost : public Host<Interface, WorkerHost<Interface, Core>> {
  using Super = Host<Interface, WorkerHost<Interface, Core>>;
  friend Super;

 public:
  static constexpr std::string_view role = "worker";

  WorkerHost(caf::actor_config& config, ScenePtr scene, Core core)
      : Super(config, std::move(scene), worker_of(core).options().id),
        core_(std::move(core)),
        id_(worker_of(core_).options().id) {}

  typename Interface::behavior_type make_behavior() override {
    return behavior(std::is_same<Core, core::Worker>{});
  }

 private:
  Core& core() { return core_; }
  core::Worker& worker() { return worker_of(core_); }
  Interface self() { return this; }

  /// A worker alone.
  typename Interface::behavior_type behavior(std::true_type) { return handlers(); }
  /// A peer.
  typename Interface::behavior_type behavior(std::false_type) {
    return handlers(this->template forward<core::Pull>(), this->template forward<core::Push>(),
                    this->template forward<core::Ended>(), this->template forward<core::Snapshot>(),
                    [this](actor::read_atom, const core::Pull& pull) {
                      return this->answer(core_.shard(), pull);
                    });
  }

  template <class... More>
  typename Interface::behavior_type handlers(More... more) {
    return {this->learn_directory(),
            [this](actor::start_atom) { on_start(); },
            this->template forward<core::Value>(),
            this->template forward<core::Ack>(),
            this->template forward<core::Proceed>(),
            this->template forward<core::Stop>(),
            this->template forward<core::StepQuery>(),
            this->template forward<core::StepAnswer>(),
            this->template forward<core::NotifyAt>(),
            this->template forward<core::CaughtUp>(),
            [this](const actor::Planned& plan) { on_planned(plan); },
            [this](const actor::Computed& computed) { on_computed(computed); },
            [this](const actor::ComputeFailed& failure) { on_failed(failure); },
            [this](actor::credit_atom) { on_credit(); },
            [this](actor::hurry_atom) { on_hurry(); },
            [this](actor::tick_atom) { on_tick(); },
            [this](actor::step_atom) { return worker().step(); },
            this->quit_when_told(),
            more...};
  }

  void on_start() {
    this->run([&](const core::Context& context) { worker().start(context); });
  }

  void on_effect(const core::Plan& plan) {
    this->scene_->pool->submit(
        [scene = this->scene_, self = self(), id = id_, step = plan.step](Scratch&) {
          attempt(self, step, [&] {
            actor::post(self, actor::Planned{step, scene->task->plan(id, step)});
          });
        });
  }

  void on_effect(core::Compute& compute) {
    this->scene_->pool->submit([scene = this->scene_, self = self(), id = id_, step = compute.step,
                                values = std::move(compute.values)](Scratch& scratch) mutable {
      attempt(self, step, [&] {
        const core::Time began = scene->now();
        StepResult result = scene->task->compute({id, step, values}, scratch);
        values.clear();  // owners may then change their ranges in place
        if (result.fault)
          return actor::post(self, actor::ComputeFailed{step, *std::move(result.fault), true});
        actor::post(self, actor::Computed{step, std::move(result.update), result.loss,
                                          scene->now() - began});
      });
    });
  }

  void on_effect(const core::Done&) { report(); }
  void on_effect(const core::SetTimer& timer) { this->tick_at(self(), timer.at); }

  /// Runs the user's code; what it throws goes to `self` as a message.
  template <class F>
  static void attempt(const Interface& self, core::Step step, F&& f) noexcept {
    if (auto fault = fault_of(f)) actor::post(self, actor::ComputeFailed{step, *std::move(fault)});
  }

  void on_planned(const actor::Planned& plan) {
    this->run(
        [&](const core::Context& context) { worker().on_plan(context, plan.step, plan.wanted); });
  }

  /// Keeps the update back for the injected delay, if any.
  void on_computed(const actor::Computed& computed) {
    const auto wait =
        slowed(computed.took, this->scene_->delay.draw(this->random_), this->scene_->slowness[id_]);
    if (hurried_ || wait <= core::Time{0}) return accept(computed);
    held_ = computed;
    held_until_ = this->scene_->now() + wait;
    this->tick_at(self(), held_until_);
  }

  void on_hurry() {
    hurried_ = true;
    if (held_) accept(*std::exchange(held_, std::nullopt));
  }

  void on_tick() {
    if (held_ && held_until_ <= this->scene_->now())
      return accept(*std::exchange(held_, std::nullopt));
    this->run([&](const core::Context& context) { worker().on_timer(context); });
  }

  void accept(const actor::Computed& computed) {
    computed_ += computed.took;
    loss_sum_ += computed.loss;
    ++losses_;
    this->run([&](const core::Context& context) {
      worker().on_update(context, computed.step, computed.update);
    });
    if (credit_) report();
  }

  void on_failed(const actor::ComputeFailed& failure) {
    if (failure.fatal)
      return this->report_failure("worker " + std::to_string(id_) + ", step " +
                                  std::to_string(failure.step + 1) + ": " + failure.why);
    this->run([&](const core::Context& context) {
      worker().on_failure(context, failure.step, failure.why);
    });
  }

  void on_credit() {
    credit_ = true;
    if (losses_ > 0) report();
  }

  void report() {
    if (!this->directory_) return;
    const auto counts = worker().gate_counts();
    actor::send(this, this->directory_->observer,
                actor::Report{.worker = id_,
                              .step = worker().step(),
                              .samples = worker().samples(),
                              .waited = worker().waited(),
                              .computed = computed_,
                              .loss_sum = std::exchange(loss_sum_, 0),
                              .losses = std::exchange(losses_, 0),
                              .draws = counts.draws,
                              .passes = counts.passes,
                              .done = worker().done()});
    credit_ = false;
  }

  Core core_;
  core::WorkerId id_;
  std::optional<actor::Computed> held_;
  core::Time held_until_{};
  bool hurried_ = false;
  bool credit_ = true;
  core::Time computed_{};
  double loss_sum_ = 0;
  std::uint64_t losses_ = 0;
};

}  // namespace starling::live
