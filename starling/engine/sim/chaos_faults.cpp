#include "starling/engine/sim/chaos_run.hpp"

#include <algorithm>

namespace starling::sim::detail {
namespace {

using namespace std::chrono_literals;

/// Failure detection suspects who was silent for this long.
constexpr Time silence_max = 150ms;

}  // namespace

void ChaosRun::begin_fault(std::uint32_t index) {
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

void ChaosRun::end_fault(std::uint32_t index) {
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
void ChaosRun::apply_cuts() {
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

/// Runs, as a member in the life that all know, and nothing is wrong with it as anyone sees it.
bool ChaosRun::is_well(NodeId id) const {
  const Machine& machine = machines_[id];
  if (machine.wants_to_leave) return false;
  if (!machine.running || machine.frozen || machine.dies_after || suspected_[id] > 0) return false;
  if (machine.node->state() != Node::State::member) return false;
  const auto& latest = witness_.latest();
  if (!latest->contains(id, machine.life)) return false;
  for (const auto& value : witness_.proposed())
    if (!value->contains(id, machine.life)) return false;
  for (const Machine& other : machines_)
    if (other.running && other.node->configuration() && other.node->suspects(id)) return false;
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
    const Fault& fault = scenario_.faults[i];
    if (under_way_[i] && fault.concerns(id)) return false;
  }
  return true;
}

/// Is what is promised still so if the `disturbed` are silent, or dead? A copy of every range that
/// nobody doubts, in whatever configuration may come next, and a quorum of every council.
bool ChaosRun::survives(std::uint64_t disturbed, bool dead) const {
  const auto is_disturbed = [&](NodeId id) { return (disturbed >> id) % 2 == 1; };
  const core::Configuration& latest = *witness_.latest();
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const bool held = std::ranges::any_of(latest.ranges[r].owners, [&](const auto& owner) {
      if (is_disturbed(owner.id) || !is_well(owner.id)) return false;
      if (witness_.full_owner(r, owner) == nullptr) return false;
      return std::ranges::all_of(witness_.proposed(), [&](const auto& value) {
        const auto* next = value->ranges[r].find(owner.id);
        return next != nullptr && next->since == owner.since;
      });
    });
    if (!held) return false;
  }
  if (!dead) return true;
  // The next council may still name whoever died lately, also before it was let in.
  const auto doubtful =
      1 + std::ranges::count_if(deaths_, [&](Time at) { return now() < at + 3s; });
  const auto well = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return !is_disturbed(member.id) && is_well(member.id);
  });
  if (doubtful > 3 || well <= doubtful) return false;
  const auto has_quorum = [&](const core::Configuration& configuration) {
    std::vector<core::WorkerId> alive;
    for (const auto id : configuration.council) {
      const Machine& machine = machines_[id];
      if (machine.running && !machine.dies_after && !is_disturbed(id) &&
          configuration.contains(id, machine.life))
        alive.push_back(id);
    }
    return core::is_quorum(configuration.council, alive);
  };
  return has_quorum(latest) && std::ranges::all_of(witness_.proposed(), [&](const auto& value) {
           return has_quorum(*value);
         });
}

bool ChaosRun::may_happen(const Fault& fault) const {
  const Machine& machine = machines_[fault.node];
  const bool grouped = fault.kind == Fault::Kind::cut || fault.kind == Fault::Kind::deafen;
  if (fault.kind == Fault::Kind::join) return machine.life == 0;
  if (!grouped &&
      (!machine.running || machine.dies_after || machine.node->state() == Node::State::excluded))
    return false;
  if (fault.kind == Fault::Kind::leave) {
    std::size_t alike = 0;
    const core::Member self = role(fault.node, 1);
    for (NodeId id = 0; id < nodes_max; ++id) {
      const core::Member other = role(id, 1);
      alike += machines_[id].running && !machines_[id].wants_to_leave &&
                       machines_[id].node->state() == Node::State::member &&
                       other.works == self.works && other.owns == self.owns
                   ? 1
                   : 0;
    }
    const bool keeps_steps = scenario_.has_coordinator() && fault.node == scenario_.coordinator();
    return alike > 2 && !keeps_steps && !machine.wants_to_leave &&
           machine.node->state() == Node::State::member;
  }
  std::uint64_t disturbed = std::uint64_t{1} << fault.node;
  if (grouped) {
    // Whoever has the quorum goes on, and declares the others dead.
    disturbed = fault.group;
    std::vector<core::WorkerId> outside;
    for (const auto id : witness_.latest()->council)
      if (!fault.concerns(id)) outside.push_back(id);
    if (!core::is_quorum(witness_.latest()->council, outside))
      disturbed = ~fault.group & ((std::uint64_t{1} << nodes_max) - 1);
  }
  // The coordinator's role does not move yet.
  const NodeId coordinator = scenario_.coordinator();
  if (scenario_.has_coordinator() && (disturbed >> coordinator) % 2 == 1) return false;
  if (scenario_.beyond) return true;
  const bool dead = fault.kind == Fault::Kind::crash;
  return survives(disturbed, dead);
}

// --- failure detection, and the end -------------------------------------------------------------

bool ChaosRun::hears(NodeId from, NodeId to) const {
  const Machine& other = machines_[from];
  return other.running && !other.frozen && other.node->state() == Node::State::member &&
         !network_.is_cut(from, to);
}

/// Everyone looks whom it has heard of.
void ChaosRun::look_around() {
  for (NodeId id = 0; id < nodes_max; ++id) {
    Machine& machine = machines_[id];
    if (!machine.running || machine.frozen || machine.node->state() != Node::State::member)
      continue;
    const core::ConfigurationPtr known = machine.node->configuration();
    for (const core::Member& member : known->members) {
      if (member.id == id) continue;
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

bool ChaosRun::at_rest() const { return unrest().empty(); }

/// Nobody that owns may go as long as fewer others than copies are there.
bool ChaosRun::may_leave(NodeId id) const {
  const core::Configuration& latest = *witness_.latest();
  const auto* self = latest.find(id);
  if (self == nullptr || !self->owns) return true;
  const auto others = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return member.owns && !machines_[member.id].wants_to_leave;
  });
  return others >= scenario_.copies;
}

/// What has not come to its end yet; empty where all has.
std::string ChaosRun::unrest() const {
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

}  // namespace starling::sim::detail
