#include "starling/engine/sim/chaos.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "starling/engine/sim/chaos_job.hpp"
#include "starling/engine/sim/promise.hpp"
#include "starling/engine/sim/queue.hpp"
#include "starling/engine/sim/witness.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using Node = core::Node<double>;

/// Failure detection looks around this often, and suspects who was silent for this long.
constexpr Time look_every = 25ms;
constexpr Time silence_max = 150ms;
/// After the last fault everyone comes to the end within this time, or ends with an error where
/// that is allowed.
constexpr Time heal_within = 120s;
constexpr Time give_up_within = 240s;
constexpr std::uint64_t events_max = 3'000'000;

struct Event {
  enum class Kind {
    start,
    packet,
    timer,
    plan,
    update,
    letter,
    fault,
    fault_ends,
    crash,
    birth,
    look
  };
  Kind kind = Kind::look;
  NodeId node = 0;
  /// What is meant for a life does not reach the next; 0 for any.
  core::Incarnation life = 0;
  /// Timer key, or which fault.
  std::uint32_t key = 0;
  core::Step step = 0;
  core::Envelope envelope = {};
};

/// One machine, and the life that runs on it.
struct Machine {
  std::unique_ptr<Node> node;
  Random random{0};
  core::Incarnation life = 0;
  std::size_t slot = 0;
  bool running = false;
  bool frozen = false;
  bool wants_to_leave = false;
  std::optional<std::uint32_t> dies_after;
  /// What came while it was frozen.
  std::vector<Event> missed;
  /// When each other was last heard of, and in which life.
  std::vector<std::pair<core::Incarnation, Time>> heard =
      std::vector<std::pair<core::Incarnation, Time>>(nodes_max);
};

class Chaos : public ChaosWorld {
 public:
  Chaos(const Scenario& scenario, Sabotage* sabotage)
      : scenario_(scenario),
        sabotage_(sabotage),
        witness_(scenario),
        random_(Random::stream(scenario.seed, 1)),
        network_(link(scenario), mix(scenario.seed)),
        machines_(nodes_max),
        job_(scenario) {}

  ChaosReport run();

  [[nodiscard]] Time now() const override { return queue_.now(); }
  [[nodiscard]] Node* node(NodeId id) override {
    return machines_.at(id).running ? machines_[id].node.get() : nullptr;
  }
  void whisper(Time at, NodeId from, NodeId to, core::Letter letter) override {
    Event event{.kind = Event::Kind::letter, .node = to};
    event.envelope.from = from;
    event.envelope.packet.payload = std::make_shared<const core::Letter>(std::move(letter));
    queue_.push(at, std::move(event));
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

  void begin_life(NodeId id, bool founding);
  void end_life(NodeId id);

  void happen(Event& event);
  void happen_to(Machine& machine, Event& event);
  template <class Act>
  void act(NodeId id, Act act);
  void carry_out(NodeId id, core::NodeEffects& effects);
  void carry_out(NodeId id, core::Dispatch& dispatch);
  void carry_out(NodeId id, const core::NodeTimer& timer);
  void carry_out(NodeId id, const core::Plan& plan);
  void carry_out(NodeId id, const core::Compute& compute);
  void carry_out(NodeId, const core::Done&) {}
  void carry_out(NodeId id, const core::Fail& fail);
  void carry_out(NodeId id, const core::Excluded&);

  void begin_fault(std::uint32_t index);
  void end_fault(std::uint32_t index);
  void apply_cuts();
  [[nodiscard]] bool may_happen(const Fault& fault) const;
  [[nodiscard]] Promise promise() const;
  [[nodiscard]] std::size_t count_alike(NodeId node) const;
  [[nodiscard]] bool keeps_steps(NodeId node) const {
    return scenario_.has_coordinator() && node == scenario_.coordinator();
  }

  void look_around();
  [[nodiscard]] bool hears(NodeId from, NodeId to) const;
  [[nodiscard]] bool at_rest() const;
  [[nodiscard]] bool may_leave(NodeId id) const;
  [[nodiscard]] std::string unrest() const;

  const Scenario scenario_;
  Sabotage* sabotage_;
  Witness witness_;
  Random random_;
  Network network_;
  Queue<Event> queue_;
  std::vector<Machine> machines_;
  const ChaosJob job_;

  std::vector<bool> under_way_;
  std::uint32_t pending_faults_ = 0;
  /// Wrongly suspected by all, how many times over.
  std::vector<int> suspected_ = std::vector<int>(nodes_max);
  /// Machines that are to begin a new life.
  int births_ = 0;
  Time healed_at_{};
  /// When processes were killed.
  std::vector<Time> deaths_;
  core::NodeEffects effects_;
  ChaosReport report_;
};

void Chaos::begin_life(NodeId id, bool founding) {
  Machine& machine = machines_[id];
  const core::Member self = job_.role(id, machine.life + 1);
  std::vector<core::WorkerId> doors;
  for (NodeId other = 0; other < nodes_max; ++other)
    if (other != id && machines_[other].running) doors.push_back(other);
  auto node = std::make_unique<Node>(job_.options(self, founding, std::move(doors)));
  const auto slot = witness_.on_birth(self, node.get());
  if (!slot) return;
  machine.node = std::move(node);
  machine.life = self.life;
  machine.slot = *slot;
  machine.random = Random::stream(scenario_.seed, 2, *slot);
  machine.running = true;
  machine.dies_after.reset();
  std::ranges::fill(machine.heard, std::pair{core::Incarnation{0}, Time{}});
  act(id, [](Node& n, const core::NodeContext& c) { n.start(c); });
}

void Chaos::end_life(NodeId id) {
  Machine& machine = machines_[id];
  machine.running = machine.frozen = false;
  machine.missed.clear();
  machine.dies_after.reset();
  witness_.on_death(id);
}

// --- events and effects -------------------------------------------------------------------------

ChaosReport Chaos::run() {
  under_way_.resize(scenario_.faults.size());
  for (NodeId id = 0; id < scenario_.founders(); ++id)
    queue_.push(Time{}, Event{.kind = Event::Kind::start, .node = id});
  for (std::uint32_t i = 0; i < scenario_.faults.size(); ++i)
    queue_.push(scenario_.faults[i].at, Event{.kind = Event::Kind::fault, .key = i});
  pending_faults_ = static_cast<std::uint32_t>(scenario_.faults.size());
  queue_.push(look_every, Event{.kind = Event::Kind::look});
  bool at_rest_now = false;
  while (report_.violation.empty() && !report_.gave_up && !at_rest_now) {
    Event event = queue_.pop();
    ++report_.events;
    happen(event);
    if (report_.violation.empty()) report_.violation = witness_.violation();
    if (scenario_.beyond && !std::ranges::any_of(machines_, &Machine::running) && births_ == 0)
      report_.gave_up = event.kind == Event::Kind::look && pending_faults_ == 0;
    if (event.kind == Event::Kind::look && pending_faults_ == 0) {
      at_rest_now = at_rest();
      const Time limit = healed_at_ + (scenario_.beyond ? give_up_within : heal_within);
      if (!at_rest_now && now() > limit && report_.violation.empty())
        report_.violation = "stuck: " + unrest();
    }
    if (report_.events > events_max) report_.violation = "too many events: " + unrest();
  }
  if (report_.violation.empty() && !report_.gave_up) {
    witness_.expect_equal_copies();
    report_.violation = witness_.violation();
  }
  report_.end = now();
  report_.packets = network_.counts().sent;
  report_.steps = witness_.steps();
  report_.passes = witness_.passes();
  report_.lives = witness_.lives();
  report_.epochs = witness_.latest() ? witness_.latest()->epoch : 0;
  return report_;
}

void Chaos::happen(Event& event) {
  switch (event.kind) {
    case Event::Kind::start:
      return begin_life(event.node, true);
    case Event::Kind::birth:
      --births_;
      return begin_life(event.node, false);
    case Event::Kind::fault:
      return begin_fault(event.key);
    case Event::Kind::fault_ends:
      return end_fault(event.key);
    case Event::Kind::look:
      queue_.push(now() + look_every, Event{.kind = Event::Kind::look});
      return look_around();
    default:
      break;
  }
  Machine& machine = machines_[event.node];
  if (!machine.running || (event.life != 0 && event.life != machine.life)) return;
  if (event.kind == Event::Kind::crash) {
    if (machine.dies_after) end_life(event.node);
    return;
  }
  if (machine.frozen)
    machine.missed.push_back(std::move(event));
  else
    happen_to(machine, event);
}

void Chaos::happen_to(Machine& machine, Event& event) {
  act(event.node, [&](Node& node, const core::NodeContext& context) {
    switch (event.kind) {
      case Event::Kind::packet:
        if (sabotage_ == nullptr || sabotage_->on_arrival(*this, event.envelope))
          node.on_packet(context, event.envelope);
        break;
      case Event::Kind::letter: {
        const auto& known = node.configuration();
        const auto* sender = known ? known->find(event.envelope.from) : nullptr;
        if (sender != nullptr)
          node.on_letter(context, sender->id, sender->life, *event.envelope.packet.payload);
        break;
      }
      case Event::Kind::timer:
        node.on_timer(context, event.key);
        break;
      case Event::Kind::plan:
        node.on_plan(context, event.step, job_.plan());
        break;
      default:
        node.on_update(context, event.step, job_.update(machine.slot, event.step));
    }
  });
}

/// Has a node act, and the world see what follows; the process may end in the middle of that.
template <class Act>
void Chaos::act(NodeId id, Act act) {
  Machine& machine = machines_[id];
  effects_.clear();
  act(*machine.node, core::NodeContext{now(), machine.random, effects_});
  witness_.on_event(id);
  if (machine.dies_after && !effects_.empty()) {
    const bool all = *machine.dies_after >= effects_.size();
    if (!all) effects_.resize(*machine.dies_after);
    carry_out(id, effects_);
    return end_life(id);
  }
  carry_out(id, effects_);
}

void Chaos::carry_out(NodeId id, core::NodeEffects& effects) {
  for (auto& effect : effects) std::visit([&](auto& e) { carry_out(id, e); }, effect);
}

void Chaos::carry_out(NodeId id, core::Dispatch& dispatch) {
  witness_.on_dispatch(id, dispatch.envelope);
  const NodeId to = dispatch.envelope.to;
  const Arrivals arrivals = network_.send(now(), id, to, 0);
  for (std::size_t i = 0; i < arrivals.count; ++i) {
    Event event{.kind = Event::Kind::packet, .node = to};
    event.envelope = i + 1 < arrivals.count ? dispatch.envelope : std::move(dispatch.envelope);
    queue_.push(arrivals.times[i], std::move(event));
  }
}

void Chaos::carry_out(NodeId id, const core::NodeTimer& timer) {
  queue_.push(
      timer.at,
      Event{.kind = Event::Kind::timer, .node = id, .life = machines_[id].life, .key = timer.key});
}

void Chaos::carry_out(NodeId id, const core::Plan& plan) {
  witness_.on_plan(id, plan.step);
  queue_.push(
      now(),
      Event{.kind = Event::Kind::plan, .node = id, .life = machines_[id].life, .step = plan.step});
}

void Chaos::carry_out(NodeId id, const core::Compute& compute) {
  witness_.on_compute(id, compute);
  const double mean =
      static_cast<double>(scenario_.compute.count()) * (id == 0 ? scenario_.straggling : 1);
  const Time took{static_cast<Time::rep>(machines_[id].random.exponential(mean))};
  queue_.push(now() + took, Event{.kind = Event::Kind::update,
                                  .node = id,
                                  .life = machines_[id].life,
                                  .step = compute.step});
}

void Chaos::carry_out(NodeId id, const core::Fail& fail) {
  if (scenario_.beyond)
    report_.gave_up = true;
  else if (report_.violation.empty())
    report_.violation = "node " + std::to_string(id) + " has ended the job: " + fail.why;
}

void Chaos::carry_out(NodeId id, const core::Excluded&) {
  witness_.on_death(id);
  if (machines_[id].wants_to_leave) return;
  ++report_.excluded;
  ++births_;
  queue_.push(now() + Time{static_cast<Time::rep>(random_.below(20'000'000))},
              Event{.kind = Event::Kind::birth, .node = id});
}

// --- faults -------------------------------------------------------------------------------------

void Chaos::begin_fault(std::uint32_t index) {
  const Fault& fault = scenario_.faults[index];
  Machine& machine = machines_[fault.node];
  if (!may_happen(fault)) {
    ++report_.faults_refused;
    healed_at_ = now();
    --pending_faults_;
    return;
  }
  ++report_.faults[static_cast<std::size_t>(fault.kind)];
  under_way_[index] = true;
  Time lasts = fault.lasts;
  switch (fault.kind) {
    case Fault::Kind::crash:
      deaths_.push_back(now());
      machine.dies_after = fault.after_effects;
      queue_.push(now() + 20ms,
                  Event{.kind = Event::Kind::crash, .node = fault.node, .life = machine.life});
      lasts += 20ms;
      break;
    case Fault::Kind::freeze:
      machine.frozen = true;
      break;
    case Fault::Kind::cut:
    case Fault::Kind::deafen:
      apply_cuts();
      break;
    case Fault::Kind::suspect:
      ++suspected_[fault.node];
      break;
    case Fault::Kind::join:
      begin_life(fault.node, false);
      break;
    case Fault::Kind::leave:
      machine.wants_to_leave = true;
      act(fault.node, [](Node& node, const core::NodeContext& c) { node.leave(c); });
      break;
  }
  queue_.push(now() + lasts, Event{.kind = Event::Kind::fault_ends, .key = index});
}

void Chaos::end_fault(std::uint32_t index) {
  const Fault& fault = scenario_.faults[index];
  Machine& machine = machines_[fault.node];
  under_way_[index] = false;
  --pending_faults_;
  healed_at_ = now();
  switch (fault.kind) {
    case Fault::Kind::crash:
      if (!machine.running && fault.lasts > Time{} && !machine.wants_to_leave)
        begin_life(fault.node, false);
      break;
    case Fault::Kind::freeze: {
      if (!std::exchange(machine.frozen, false)) break;
      auto missed = std::exchange(machine.missed, {});
      for (Event& event : missed) queue_.push(now(), std::move(event));
      break;
    }
    case Fault::Kind::cut:
    case Fault::Kind::deafen:
      apply_cuts();
      break;
    case Fault::Kind::suspect:
      --suspected_[fault.node];
      break;
    default:
      break;
  }
}

/// Cuts what the faults under way cut, and nothing else.
void Chaos::apply_cuts() {
  network_.heal();
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
    const Fault& fault = scenario_.faults[i];
    if (!under_way_[i] || fault.group == 0) continue;
    for (NodeId from = 0; from < nodes_max; ++from)
      for (NodeId to = 0; to < nodes_max; ++to) {
        const bool inwards = !fault.concerns(from) && fault.concerns(to);
        const bool outwards = fault.concerns(from) && !fault.concerns(to);
        if (outwards || (inwards && fault.kind == Fault::Kind::cut)) network_.cut(from, to);
      }
  }
}

Promise Chaos::promise() const {
  std::vector<Condition> conditions;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    conditions.push_back({.node = machine.running ? machine.node.get() : nullptr,
                          .frozen = machine.frozen,
                          .dying = machine.dies_after.has_value(),
                          .suspected = suspected_[id] > 0,
                          .leaving = machine.wants_to_leave});
  }
  std::vector<std::uint64_t> groups;
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i)
    if (under_way_[i] && scenario_.faults[i].group != 0)
      groups.push_back(scenario_.faults[i].group);
  const auto deaths = std::ranges::count_if(deaths_, [&](Time at) { return now() < at + 3s; });
  return {scenario_, witness_, std::move(conditions), std::move(groups),
          static_cast<std::size_t>(deaths)};
}

bool Chaos::may_happen(const Fault& fault) const {
  const Machine& machine = machines_[fault.node];
  if (fault.kind == Fault::Kind::join) return machine.life == 0;
  if (fault.kind == Fault::Kind::cut || fault.kind == Fault::Kind::deafen)
    return scenario_.beyond || promise().allows_cut(fault.group);
  if (!machine.running || machine.dies_after || machine.node->state() == Node::State::excluded)
    return false;
  // The coordinator's role does not move yet.
  if (keeps_steps(fault.node)) return false;
  if (fault.kind == Fault::Kind::leave)
    return !machine.wants_to_leave && machine.node->state() == Node::State::member &&
           count_alike(fault.node) > std::max<std::size_t>(2, scenario_.copies);
  if (scenario_.beyond) return true;
  return fault.kind == Fault::Kind::crash ? promise().allows_death(fault.node)
                                          : promise().allows_doubt(fault.node);
}

/// Members of the same role that mean to stay.
std::size_t Chaos::count_alike(NodeId node) const {
  const core::Member self = job_.role(node, 1);
  std::size_t count = 0;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    const core::Member other = job_.role(id, 1);
    const bool stays =
        machine.running && !machine.wants_to_leave && machine.node->state() == Node::State::member;
    count += stays && other.works == self.works && other.owns == self.owns ? 1 : 0;
  }
  return count;
}

// --- failure detection, and the end -------------------------------------------------------------

bool Chaos::hears(NodeId from, NodeId to) const {
  const Machine& other = machines_[from];
  return other.running && !other.frozen && other.node->state() == Node::State::member &&
         !network_.is_cut(from, to);
}

/// Everyone looks whom it has heard of.
void Chaos::look_around() {
  for (NodeId id = 0; id < nodes_max; ++id) {
    Machine& machine = machines_[id];
    if (!machine.running || machine.frozen || machine.node->state() != Node::State::member)
      continue;
    const core::ConfigurationPtr known = machine.node->configuration();
    for (const core::Member& member : known->members) {
      if (member.id == id || keeps_steps(member.id)) continue;
      auto& [life, at] = machine.heard[member.id];
      const bool same = machines_[member.id].life == member.life;
      if (life != member.life || (same && hears(member.id, id))) {
        life = member.life;
        at = now();
      }
      const bool suspicious =
          suspected_[member.id] > 0 || now() > at + silence_max + Time{look_every * (id % 3)};
      if (suspicious == machine.node->suspects(member.id)) continue;
      act(id, [&](Node& node, const core::NodeContext& c) {
        if (suspicious)
          node.suspect(c, member.id);
        else
          node.trust(c, member.id);
      });
      if (!machine.running || machine.node->state() != Node::State::member) break;
    }
  }
}

bool Chaos::at_rest() const { return unrest().empty(); }

/// Nobody that owns may go as long as fewer others than copies are there.
bool Chaos::may_leave(NodeId id) const {
  const core::Configuration& latest = *witness_.latest();
  const auto* self = latest.find(id);
  if (self == nullptr || !self->owns) return true;
  const auto others = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return member.owns && !machines_[member.id].wants_to_leave;
  });
  return others >= scenario_.copies;
}

/// What has not come to its end yet; empty where all has.
std::string Chaos::unrest() const {
  if (births_ > 0) return "a life is to begin";
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    if (!machine.running || machine.node->state() == Node::State::excluded) continue;
    const auto who = "node " + std::to_string(id) + " (life " + std::to_string(machine.life) + ") ";
    if (machine.wants_to_leave && may_leave(id)) return who + "has not left";
    if (machine.node->state() != Node::State::member) return who + "is no member";
    const core::Worker* worker = machine.node->worker();
    if (worker != nullptr && !worker->done())
      return who + "is at step " + std::to_string(worker->step()) + " of " +
             std::to_string(scenario_.steps);
    if (machine.node->configuration() != witness_.latest() &&
        *machine.node->configuration() != *witness_.latest())
      return who + "is in an old epoch";
  }
  const core::Configuration& latest = *witness_.latest();
  for (const core::Member& member : latest.members)
    if (!machines_[member.id].running || machines_[member.id].life != member.life)
      return "member " + std::to_string(member.id) + " is dead";
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    for (const core::RangeOwner& owner : latest.ranges[r].owners)
      if (owner.retiring || witness_.full_owner(r, owner) == nullptr)
        return "range " + std::to_string(r) + " is on its way";
  return {};
}

}  // namespace

ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage) {
  return Chaos{scenario, sabotage}.run();
}

Scenario shrink(Scenario scenario, std::size_t attempts, Sabotage* sabotage) {
  const auto fails = [&](const Scenario& candidate) {
    return attempts-- > 0 && !run_chaos(candidate, sabotage).violation.empty();
  };
  for (bool smaller = true; smaller && attempts > 0;) {
    smaller = false;
    for (std::size_t i = scenario.faults.size(); i-- > 0 && attempts > 0;) {
      Scenario candidate = scenario;
      candidate.faults.erase(candidate.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails(candidate)) continue;
      scenario = std::move(candidate);
      smaller = true;
    }
    for (double Scenario::*share :
         {&Scenario::loss, &Scenario::duplication, &Scenario::reordering}) {
      Scenario candidate = scenario;
      candidate.*share = 0;
      if (scenario.*share == 0 || attempts == 0 || !fails(candidate)) continue;
      scenario = std::move(candidate);
      smaller = true;
    }
  }
  return scenario;
}

}  // namespace starling::sim
