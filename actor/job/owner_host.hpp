/// The actors of a server shard and of the coordinator. Each drives a core (host.hpp).
#pragma once

#include "starling/actor/job/host.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::actor {

class ShardHost;
template <>
struct InterfaceOf<ShardHost> {
  using type = OwnerActor;
};
class CoordinatorHost;
template <>
struct InterfaceOf<CoordinatorHost> {
  using type = CoordinatorActor;
};

class ShardHost : public Host<ShardHost> {
  using Super = Host<ShardHost>;
  friend Super;

 public:
  static constexpr std::string_view role = "shard";

  ShardHost(caf::actor_config& config, JobContextPtr job_context, core::Shard core,
            std::uint64_t random_stream)
      : Super(config, std::move(job_context), random_stream), core_(std::move(core)) {}

  actor::OwnerActor::behavior_type make_behavior() override {
    return std::apply(
        [this](auto... forwards) {
          return actor::OwnerActor::behavior_type{forwards..., this->directory_handler(),
                                                  [this](actor::read_atom, const core::Pull& pull) {
                                                    return this->answer(core_, pull);
                                                  },
                                                  this->quit_handler()};
        },
        this->forward_all(core::OwnerMessages{}));
  }

 private:
  core::Shard& core() { return core_; }
  template <class Effect>
  void on_effect(const Effect&) {
    STARLING_CHECK(false && "a shard's only effects are Send and Fail");
  }

  core::Shard core_;
};

class CoordinatorHost : public Host<CoordinatorHost> {
  using Super = Host<CoordinatorHost>;
  friend Super;

 public:
  static constexpr std::string_view role = "coordinator";

  CoordinatorHost(caf::actor_config& config, JobContextPtr job_context, core::Coordinator core,
                  std::uint64_t random_stream)
      : Super(config, std::move(job_context), random_stream), core_(std::move(core)) {}

  actor::CoordinatorActor::behavior_type make_behavior() override {
    return std::apply(
        [this](auto... forwards) {
          return actor::CoordinatorActor::behavior_type{
              forwards..., directory_handler(),
              [this](actor::timer_atom) {
                run([&](const core::Context& context) { core_.on_timer(context); });
              },
              [this](actor::step_atom) { return steps_report(); }, quit_handler()};
        },
        forward_all(core::CoordinatorMessages{}));
  }

 private:
  core::Coordinator& core() { return core_; }
  void on_effect(const core::SetTimer& timer) {
    schedule_tick(actor::CoordinatorActor{this}, timer.at);
  }
  template <class Effect>
  void on_effect(const Effect&) {
    STARLING_CHECK(false && "a coordinator's only effects are Send, Fail and SetTimer");
  }

  [[nodiscard]] actor::StepsReport steps_report() const {
    const auto [min, max] = core_.spread();
    return {min, max, core_.spread_max(), core_.draws(), core_.passes()};
  }

  core::Coordinator core_;
};

}  // namespace starling::actor
