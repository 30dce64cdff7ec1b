/// One scenario as it runs: the machines, the network between them, and the faults. Internal to
/// chaos; not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/sim/chaos/chaos.hpp"
#include "starling/engine/sim/chaos/chaos_job.hpp"
#include "starling/engine/sim/chaos/fault_budget.hpp"
#include "starling/engine/sim/chaos/invariant_checker.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::sim::detail {

using MemberCore = core::MemberCore<double>;

/// Interval at which every member checks which others are silent.
inline constexpr Time look_every = std::chrono::milliseconds{25};

/// An event of a run.
struct Event {
  enum class Kind {
    start,
    packet,
    timer,
    plan,
    update,
    peer_message,
    fault,
    fault_ends,
    crash,
    birth,
    look
  };
  Kind kind = Kind::look;
  NodeId node = 0;
  /// The only incarnation of the node that the event reaches; 0 for any.
  core::Incarnation incarnation = 0;
  /// Timer key, index of a fault, or 1 where a message counts as sent by its sender.
  core::TimerKey key = 0;
  core::Step step = 0;
  core::Envelope envelope = {};
};

/// One machine, and the incarnation that runs on it.
struct Machine {
  std::unique_ptr<MemberCore> node;
  Random random{0};
  core::Incarnation incarnation = 0;
  std::size_t slot = 0;
  bool running = false;
  bool frozen = false;
  bool wants_to_leave = false;
  std::optional<std::uint32_t> dies_after;
  /// Events that came while it was frozen.
  std::vector<Event> missed;
  /// By machine: its incarnation, and when it was last seen alive.
  std::vector<std::pair<core::Incarnation, Time>> heard =
      std::vector<std::pair<core::Incarnation, Time>>(nodes_max);
};

class ChaosRun : public ChaosWorld {
 public:
  ChaosRun(const Scenario& scenario, Sabotage* sabotage)
      : scenario_(scenario),
        sabotage_(sabotage),
        checker_(scenario),
        random_(Random::stream(scenario.seed, 1)),
        network_(link(scenario), mix(scenario.seed)),
        machines_(nodes_max),
        job_(scenario) {}

  ChaosReport run();

  [[nodiscard]] Time now() const override { return queue_.now(); }
  [[nodiscard]] MemberCore* node(NodeId id) override {
    return machines_.at(id).running ? machines_[id].node.get() : nullptr;
  }
  void whisper(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) override {
    pass_on(at, from, to, std::move(peer_message), false);
  }
  void inject(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) override {
    pass_on(at, from, to, std::move(peer_message), true);
  }

 private:
  static LinkOptions link(const Scenario& scenario) {
    LinkOptions options;
    options.latency = Distribution{laws::Exponential{scenario.latency}};
    options.loss = scenario.loss;
    options.duplication = scenario.duplication;
    options.reordering = scenario.reordering;
    options.delay = Distribution{laws::Exponential{10 * scenario.latency}};
    return options;
  }

  void pass_on(Time at, NodeId from, NodeId to, core::PeerMessage peer_message, bool said) {
    Event event{.kind = Event::Kind::peer_message, .node = to, .key = said ? 1U : 0U};
    event.envelope.from = from;
    event.envelope.to = to;
    event.envelope.packet.payload =
        std::make_shared<const core::PeerMessage>(std::move(peer_message));
    queue_.push(at, std::move(event));
  }

  void begin_incarnation(NodeId id, bool founding);
  void end_incarnation(NodeId id);

  void happen(Event& event);
  void receive(MemberCore& node, const core::MemberContext& context, core::Envelope& envelope,
               bool said);
  void happen_to(Machine& machine, Event& event);
  template <class Act>
  void act(NodeId id, Act act);
  void execute(NodeId id, core::MemberEffects& effects);
  void execute(NodeId id, core::Dispatch& dispatch);
  void execute(NodeId id, const core::MemberTimer& timer);
  void execute(NodeId id, const core::Plan& plan);
  void execute(NodeId id, const core::Compute& compute);
  void execute(NodeId, const core::Done&) {}
  void execute(NodeId id, const core::Fail& fail);
  void execute(NodeId id, const core::Excluded&);

  void begin_fault(std::size_t index);
  void end_fault(std::size_t index);
  void apply_partitions();
  [[nodiscard]] bool may_happen(const Fault& fault) const;
  [[nodiscard]] bool may_endure(const Fault& fault) const;
  [[nodiscard]] bool is_settled() const;
  [[nodiscard]] bool endures() const;
  [[nodiscard]] FaultBudget fault_budget() const;
  [[nodiscard]] bool is_dispensable(NodeId node) const;

  void look_around();
  [[nodiscard]] bool hears(NodeId from, NodeId to) const;
  [[nodiscard]] bool at_rest() const;
  [[nodiscard]] bool may_leave(NodeId id) const;
  [[nodiscard]] std::string unrest() const;
  [[nodiscard]] std::string travelling() const;
  [[nodiscard]] std::string catching_up() const;

  const Scenario scenario_;
  Sabotage* sabotage_;
  InvariantChecker checker_;
  Random random_;
  Network network_;
  Queue<Event> queue_;
  std::vector<Machine> machines_;
  const ChaosJob job_;

  std::vector<bool> is_active_;
  std::uint32_t pending_faults_ = 0;
  /// A fault has begun that lasts longer than `patience`.
  bool endured_ = false;
  /// By machine: how many active faults make all others suspect it.
  std::vector<int> suspected_ = std::vector<int>(nodes_max);
  /// By machine: how many active faults block its link with one other, in one direction or both.
  std::vector<int> suspected_by_some_ = std::vector<int>(nodes_max);
  /// How many machines are to begin a new incarnation.
  int births_ = 0;
  Time healed_at_{};
  /// When processes were killed.
  std::vector<Time> deaths_;
  core::MemberEffects effects_;
  ChaosReport report_;
};

/// Lets a node handle an event, and executes the effects; the process may end in the middle of
/// them.
template <class Act>
void ChaosRun::act(NodeId id, Act act) {
  Machine& machine = machines_[id];
  effects_.clear();
  act(*machine.node, core::MemberContext{now(), machine.random, effects_});
  checker_.on_event(id);
  if (machine.dies_after && !effects_.empty()) {
    const bool all = *machine.dies_after >= effects_.size();
    if (!all) effects_.resize(*machine.dies_after);
    execute(id, effects_);
    return end_incarnation(id);
  }
  execute(id, effects_);
}

}  // namespace starling::sim::detail
