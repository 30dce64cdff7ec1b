/// The run of one scenario: its machines, the network between them, and the faults. A machine has
/// the number of its node, and keeps it when a new incarnation begins. Internal to run_chaos(); not
/// thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/sim/chaos/chaos.hpp"
#include "starling/engine/sim/chaos/chaos_job.hpp"
#include "starling/engine/sim/chaos/fault_budget.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::sim::detail {

using MemberCore = core::MemberCore;

/// The interval at which every member checks which others are silent.
inline constexpr Time detection_interval = std::chrono::milliseconds{25};

/// An event of a run.
struct Event {
  enum class Kind {
    /// The first incarnation of an initial member begins.
    start,
    packet,
    timer,
    /// The result of a Plan comes.
    plan,
    /// Some parts of the update of a Compute come, or the whole update.
    parts,
    update,
    /// A Sabotage's message arrives.
    forged_message,
    fault,
    fault_ends,
    /// A process that is to crash ends, if no event has ended it before.
    crash,
    /// A new incarnation of an excluded member begins.
    rejoin,
    /// Every member checks which others are silent.
    detect_failures
  };
  Kind kind = Kind::detect_failures;
  NodeId node = 0;
  /// The only incarnation of the node that the event reaches; 0 for any.
  core::Incarnation incarnation = 0;
  /// timer: its key; fault and fault_ends: the fault's index; parts and update: the number of the
  /// computation (Machine::computation); forged_message: 1 if the checker counts it as sent by its
  /// sender.
  core::TimerKey key = 0;
  /// plan, parts and update: the step of the Plan or Compute.
  core::Step step = 0;
  /// parts: the last bucket of which the worker has the parts.
  std::uint32_t bucket = 0;
  core::Envelope envelope = {};
};

/// One machine, and the incarnation of a member that runs, or ran last, on it.
struct Machine {
  std::unique_ptr<MemberCore> core;
  Random random{0};
  core::Incarnation incarnation = 0;
  /// The incarnation's index, as in InvariantChecker.
  std::size_t incarnation_index = 0;
  bool running = false;
  bool frozen = false;
  /// When the last of the active freezes ends.
  Time frozen_until{};
  bool wants_to_leave = false;
  /// Numbers the computations of the worker. If the worker hands in early, its update comes with a
  /// new number.
  std::uint32_t computation = 0;
  /// Set when a crash has begun: at the next event that has effects, the process ends after this
  /// many of them.
  std::optional<std::uint32_t> dies_after_effects;
  /// Events that came while the machine was frozen.
  std::vector<Event> deferred;
  /// By other machine: its incarnation, and when this machine last noticed that it is alive.
  std::vector<std::pair<core::Incarnation, Time>> last_alive =
      std::vector<std::pair<core::Incarnation, Time>>(nodes_max);
};

class ChaosRun : public ChaosWorld {
 public:
  ChaosRun(const Scenario& scenario, Sabotage* sabotage)
      : scenario_(scenario),
        sabotage_(sabotage),
        job_(scenario_of_cores(scenario, sabotage)),
        checker_(scenario, job_.deal()),
        random_(Random::stream(scenario.seed, 1)),
        network_(link_options(scenario), mix(scenario.seed)),
        machines_(nodes_max) {}

  ChaosReport run();

  [[nodiscard]] Time now() const override { return queue_.now(); }
  [[nodiscard]] MemberCore* node(NodeId id) override {
    return machines_.at(id).running ? machines_[id].core.get() : nullptr;
  }
  void forge_arrival(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) override {
    queue_forged(at, from, to, std::move(peer_message), false);
  }
  void forge_sending(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) override {
    queue_forged(at, from, to, std::move(peer_message), true);
  }

 private:
  static Scenario scenario_of_cores(Scenario scenario, Sabotage* sabotage) {
    if (sabotage != nullptr) scenario.barrier = sabotage->barrier_of_cores(scenario.barrier);
    return scenario;
  }

  static LinkOptions link_options(const Scenario& scenario) {
    LinkOptions options;
    options.latency = Distribution{laws::Exponential{scenario.latency}};
    options.loss = scenario.loss;
    options.duplication = scenario.duplication;
    options.reordering = scenario.reordering;
    options.delay = Distribution{laws::Exponential{10 * scenario.latency}};
    return options;
  }

  /// Schedules a message of a Sabotage.
  void queue_forged(Time at, NodeId from, NodeId to, core::PeerMessage peer_message,
                    bool counts_as_sent) {
    Event event{.kind = Event::Kind::forged_message, .node = to, .key = counts_as_sent ? 1U : 0U};
    event.envelope.from = from;
    event.envelope.to = to;
    event.envelope.packet.payload =
        std::make_shared<const core::PeerMessage>(std::move(peer_message));
    queue_.push(at, std::move(event));
  }

  void begin_incarnation(NodeId id, bool is_initial);
  void end_incarnation(NodeId id);

  void handle(Event& event);
  void deliver_forged(MemberCore& core, const core::MemberContext& context,
                      core::Envelope& envelope, bool counts_as_sent);
  void handle_at(Machine& machine, Event& event);
  template <class Call>
  void run_event(NodeId id, Call call);
  void execute(NodeId id, core::MemberEffects& effects);
  void execute(NodeId id, core::Dispatch& dispatch);
  void execute(NodeId id, const core::MemberTimer& timer);
  void execute(NodeId id, const core::Plan& plan);
  void execute(NodeId id, const core::Compute& compute);
  void execute(NodeId id, const core::HandInNow& hand_in);
  void schedule_update(NodeId id, core::Step step, double mean_time);
  void execute(NodeId, const core::Done&) {}
  /// Jobs on several nodes have neither of the next two effects.
  void execute(NodeId, const core::LocalMessage&) { STARLING_CHECK(false); }
  void execute(NodeId, const core::ObservedState&) { STARLING_CHECK(false); }
  void execute(NodeId, const core::MemberAnswer&) {}
  void execute(NodeId, const core::IsIn<core::FlowOutputs> auto&) {
    STARLING_CHECK(!"an effect of another role");
  }
  void execute(NodeId id, const core::Fail& fail);
  void execute(NodeId id, const core::Excluded&);

  void begin_fault(std::size_t index);
  void end_fault(std::size_t index);
  void apply_partitions();
  [[nodiscard]] bool may_begin(const Fault& fault) const;
  [[nodiscard]] bool may_last(const Fault& fault) const;
  [[nodiscard]] bool is_settled() const;
  [[nodiscard]] bool has_lasting_fault() const;
  [[nodiscard]] FaultBudget fault_budget() const;
  [[nodiscard]] bool is_dispensable(NodeId node) const;

  void detect_failures();
  void extend_suspicions();
  [[nodiscard]] bool is_wrongly_suspected(NodeId node) const;
  [[nodiscard]] bool is_reachable(NodeId from, NodeId to) const;
  [[nodiscard]] bool is_finished() const;
  [[nodiscard]] bool may_leave(NodeId id) const;
  [[nodiscard]] std::string why_not_finished() const;
  [[nodiscard]] std::string why_ranges_move() const;
  [[nodiscard]] std::string why_replicas_differ() const;

  const Scenario scenario_;
  Sabotage* sabotage_;
  const ChaosJob job_;
  InvariantChecker checker_;
  Random random_;
  Network network_;
  Queue<Event> queue_;
  std::vector<Machine> machines_;

  /// By fault: true while it is active.
  std::vector<bool> is_active_;
  /// The number of faults that have not ended yet.
  std::uint32_t pending_faults_ = 0;
  /// True once a fault has begun that lasts longer than `stuck_after`.
  bool had_lasting_fault_ = false;
  /// By machine: the number of active faults that make all others suspect it.
  std::vector<int> suspicions_ = std::vector<int>(nodes_max);
  /// By machine: the latest incarnation that these faults concern.
  std::vector<core::Incarnation> suspected_ = std::vector<core::Incarnation>(nodes_max);
  /// By machine: the number of active faults that block its link with one other machine, in one
  /// direction or both.
  std::vector<int> pair_partitions_ = std::vector<int>(nodes_max);
  /// The number of machines on which a new incarnation of an excluded member is scheduled.
  int pending_rejoins_ = 0;
  /// When the last fault ended or was left out.
  Time healed_at_{};
  /// The times at which processes were killed.
  std::vector<Time> deaths_;
  core::MemberEffects effects_;
  ChaosReport report_;
};

/// Calls `call(core, context)` for an event of a node, then executes the effects. If the node is
/// crashing, executes only `dies_after_effects` of them, then ends the process.
template <class Call>
void ChaosRun::run_event(NodeId id, Call call) {
  Machine& machine = machines_[id];
  effects_.clear();
  call(*machine.core, core::MemberContext{now(), machine.random, effects_});
  checker_.on_event(id);
  if (machine.dies_after_effects && !effects_.empty()) {
    if (*machine.dies_after_effects < effects_.size()) effects_.resize(*machine.dies_after_effects);
    execute(id, effects_);
    return end_incarnation(id);
  }
  execute(id, effects_);
}

}  // namespace starling::sim::detail
