#include "starling/engine/sim/chaos/chaos_run.hpp"

#include <algorithm>

namespace starling::sim::detail {
namespace {

using namespace std::chrono_literals;

/// Failure detection suspects a member that was silent for this long.
constexpr Time silence_max = 150ms;

}  // namespace

void ChaosRun::begin_fault(std::size_t index) {
  const Fault& fault = scenario_.faults[index];
  Machine& machine = machines_[fault.node];
  if (!may_happen(fault) || (!scenario_.beyond && fault.endures() && !may_endure(fault))) {
    ++report_.faults_refused;
    healed_at_ = now();
    --pending_faults_;
    return;
  }
  ++report_.faults[static_cast<std::size_t>(fault.kind)];
  is_active_[index] = true;
  endured_ = endured_ || fault.endures();
  Time lasts = fault.lasts;
  switch (fault.kind) {
    case Fault::Kind::crash:
      deaths_.push_back(now());
      machine.dies_after = fault.after_effects;
      queue_.push(now() + 20ms, Event{.kind = Event::Kind::crash,
                                      .node = fault.node,
                                      .incarnation = machine.incarnation});
      lasts += 20ms;
      break;
    case Fault::Kind::freeze:
      machine.frozen = true;
      break;
    case Fault::Kind::partition:
    case Fault::Kind::one_way_partition:
      apply_partitions();
      break;
    case Fault::Kind::pair_partition:
      ++suspected_by_some_[fault.node];
      ++suspected_by_some_[fault.other];
      apply_partitions();
      break;
    case Fault::Kind::suspect:
      ++suspected_[fault.node];
      break;
    case Fault::Kind::join:
      begin_incarnation(fault.node, false);
      break;
    case Fault::Kind::leave:
      machine.wants_to_leave = true;
      act(fault.node, [](MemberCore& node, const core::MemberContext& c) { node.leave(c); });
      break;
  }
  queue_.push(now() + lasts, Event{.kind = Event::Kind::fault_ends, .key = index});
}

void ChaosRun::end_fault(std::size_t index) {
  const Fault& fault = scenario_.faults[index];
  Machine& machine = machines_[fault.node];
  is_active_[index] = false;
  --pending_faults_;
  healed_at_ = now();
  switch (fault.kind) {
    case Fault::Kind::crash:
      if (!machine.running && fault.lasts > Time{} && !machine.wants_to_leave)
        begin_incarnation(fault.node, false);
      break;
    case Fault::Kind::freeze: {
      if (!std::exchange(machine.frozen, false)) break;
      auto missed = std::exchange(machine.missed, {});
      for (Event& event : missed) queue_.push(now(), std::move(event));
      break;
    }
    case Fault::Kind::partition:
    case Fault::Kind::one_way_partition:
      apply_partitions();
      break;
    case Fault::Kind::pair_partition:
      --suspected_by_some_[fault.node];
      --suspected_by_some_[fault.other];
      apply_partitions();
      break;
    case Fault::Kind::suspect:
      --suspected_[fault.node];
      break;
    default:
      break;
  }
}

/// Removes all partitions from the network, then applies those of the active faults.
void ChaosRun::apply_partitions() {
  network_.heal();
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
    const Fault& fault = scenario_.faults[i];
    if (!is_active_[i]) continue;
    if (fault.kind == Fault::Kind::pair_partition) {
      network_.cut(fault.node, fault.other);
      if (fault.both) network_.cut(fault.other, fault.node);
    }
    if (fault.group == 0) continue;
    for (NodeId from = 0; from < nodes_max; ++from)
      for (NodeId to = 0; to < nodes_max; ++to) {
        const bool inwards = !fault.has_in_group(from) && fault.has_in_group(to);
        const bool outwards = fault.has_in_group(from) && !fault.has_in_group(to);
        if (outwards || (inwards && fault.kind == Fault::Kind::partition)) network_.cut(from, to);
      }
  }
}

FaultBudget ChaosRun::fault_budget() const {
  std::vector<Condition> conditions;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    conditions.push_back({.core = machine.running ? machine.node.get() : nullptr,
                          .frozen = machine.frozen,
                          .dying = machine.dies_after.has_value(),
                          .suspected = suspected_[id] + suspected_by_some_[id] > 0,
                          .leaving = machine.wants_to_leave});
  }
  std::vector<NodeSet> groups;
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i)
    if (is_active_[i] && scenario_.faults[i].group != 0)
      groups.push_back(scenario_.faults[i].group);
  const auto deaths = std::ranges::count_if(deaths_, [&](Time at) { return now() < at + 3s; });
  return {scenario_, checker_, std::move(conditions), std::move(groups),
          static_cast<std::size_t>(deaths)};
}

/// Returns true if a fault that endures may begin. It must be the only active fault, and the nodes
/// that go on without the others must be able to do so for good.
bool ChaosRun::may_endure(const Fault& fault) const {
  if (std::ranges::count(is_active_, true) > 0 || !is_settled()) return false;
  if (fault.kind == Fault::Kind::partition || fault.kind == Fault::Kind::one_way_partition)
    return fault_budget().allows_lasting_partition(fault.group);
  if (fault.kind == Fault::Kind::pair_partition && !fault_budget().allows_death(fault.other))
    return false;
  return fault_budget().allows_death(fault.node);
}

/// Returns true if no member joins or leaves, and no range moves.
bool ChaosRun::is_settled() const {
  const core::Configuration& latest = *checker_.latest();
  const auto is_on_its_way = [&](const Machine& machine) {
    return machine.running && (machine.wants_to_leave ||
                               !latest.contains(machine.node->self().id, machine.incarnation));
  };
  return births_ == 0 && std::ranges::none_of(machines_, is_on_its_way) && travelling().empty();
}

bool ChaosRun::endures() const {
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i)
    if (is_active_[i] && scenario_.faults[i].endures()) return true;
  return false;
}

bool ChaosRun::may_happen(const Fault& fault) const {
  if (!scenario_.beyond && endures()) return false;  // a node that joins may be on the other side
  const Machine& machine = machines_[fault.node];
  if (fault.kind == Fault::Kind::join) return machine.incarnation == 0;
  if (fault.kind == Fault::Kind::partition || fault.kind == Fault::Kind::one_way_partition)
    return scenario_.beyond || fault_budget().allows_partition(fault.group);
  if (!machine.running || machine.dies_after ||
      machine.node->state() == MemberCore::State::excluded)
    return false;
  if (fault.kind == Fault::Kind::pair_partition)  // one of the two must go, or one after the other
    return scenario_.beyond || fault_budget().allows_suspicion(fault.node, fault.other);
  if (fault.kind == Fault::Kind::leave)
    return !machine.wants_to_leave && machine.node->state() == MemberCore::State::member &&
           is_dispensable(fault.node);
  if (scenario_.beyond) return true;
  return fault.kind == Fault::Kind::crash ? fault_budget().allows_death(fault.node)
                                          : fault_budget().allows_suspicion(fault.node);
}

/// Returns true if enough members of the same role stay, or if the node neither works nor owns.
bool ChaosRun::is_dispensable(NodeId node) const {
  const core::Member self = job_.role(node, 1);
  if (!self.works && !self.owns) return true;
  std::size_t count = 0;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    const core::Member other = job_.role(id, 1);
    const bool stays = machine.running && !machine.wants_to_leave &&
                       machine.node->state() == MemberCore::State::member;
    count += stays && other.works == self.works && other.owns == self.owns ? 1 : 0;
  }
  return count > std::max<std::size_t>(2, scenario_.copies);
}

// --- failure detection, and the end -------------------------------------------------------------

bool ChaosRun::hears(NodeId from, NodeId to) const {
  const Machine& other = machines_[from];
  return other.running && !other.frozen && other.node->state() == MemberCore::State::member &&
         !network_.is_cut(from, to);
}

/// Makes every member suspect the members that were silent, and trust those that were not.
void ChaosRun::look_around() {
  for (NodeId id = 0; id < nodes_max; ++id) {
    Machine& machine = machines_[id];
    if (!machine.running || machine.frozen || machine.node->state() != MemberCore::State::member)
      continue;
    const core::ConfigurationPtr known = machine.node->configuration();
    for (const core::Member& member : known->members) {
      if (member.id == id) continue;
      auto& [incarnation, at] = machine.heard[member.id];
      const bool same = machines_[member.id].incarnation == member.incarnation;
      if (incarnation != member.incarnation || (same && hears(member.id, id))) {
        incarnation = member.incarnation;
        at = now();
      }
      const bool suspicious =
          suspected_[member.id] > 0 || now() > at + silence_max + Time{look_every * (id % 3)};
      if (suspicious == machine.node->suspects(member.id)) continue;
      act(id, [&](MemberCore& node, const core::MemberContext& c) {
        if (suspicious)
          node.suspect(c, member.id, member.incarnation);
        else
          node.trust(c, member.id, member.incarnation);
      });
      if (!machine.running || machine.node->state() != MemberCore::State::member) break;
    }
  }
}

bool ChaosRun::at_rest() const { return unrest().empty(); }

/// True unless the node owns ranges and too few other owners stay to hold all replicas.
bool ChaosRun::may_leave(NodeId id) const {
  const core::Configuration& latest = *checker_.latest();
  const auto* self = latest.find(id);
  if (self == nullptr || !self->owns) return true;
  const auto others = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return member.owns && !machines_[member.id].wants_to_leave;
  });
  return others >= scenario_.copies;
}

/// Describes something that has not come to its end yet; empty where everything has.
std::string ChaosRun::unrest() const {
  if (births_ > 0) return "an incarnation is to begin";
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    if (!machine.running || machine.node->state() == MemberCore::State::excluded) continue;
    const auto who = "node " + std::to_string(id) + " (incarnation " +
                     std::to_string(machine.incarnation) + ") ";
    if (machine.wants_to_leave && may_leave(id)) return who + "has not left";
    if (machine.node->state() != MemberCore::State::member) return who + "is no member";
    const core::Worker* worker = machine.node->worker();
    if (worker != nullptr && !worker->done())
      return who + "is at step " + std::to_string(worker->step()) + " of " +
             std::to_string(scenario_.steps);
    if (machine.node->configuration() != checker_.latest() &&
        *machine.node->configuration() != *checker_.latest())
      return who + "is in an old epoch";
  }
  const core::Configuration& latest = *checker_.latest();
  for (const core::Member& member : latest.members)
    if (!machines_[member.id].running || machines_[member.id].incarnation != member.incarnation)
      return "member " + std::to_string(member.id) + " is dead";
  const std::string moves = travelling();
  return moves.empty() ? catching_up() : moves;
}

/// Describes a range that not all of its owners hold or are to keep, or that has too few owners
/// though there are members; empty where there is none.
std::string ChaosRun::travelling() const {
  const core::Configuration& latest = *checker_.latest();
  const auto staying = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return !machines_[member.id].wants_to_leave;
  });
  if (latest.copies_min() < std::min<std::size_t>(scenario_.copies, staying))
    return "a range has too few owners";
  for (core::RangeId r = 0; r < scenario_.ranges; ++r)
    for (const core::RangeOwner& owner : latest.ranges[r].owners)
      if (owner.retiring || checker_.full_owner(r, owner) == nullptr)
        return "range " + std::to_string(r) + " is on its way";
  return {};
}

/// Describes a range of which some owner lacks updates that its primary has; empty where there is
/// none.
std::string ChaosRun::catching_up() const {
  const auto has_all = [&](const core::RangeOwner& owner, NodeId primary, core::RangeId range) {
    const auto& own = machines_[owner.id].node->replica();
    return own.is_installed(range) &&
           own.number(range) == machines_[primary].node->replica().number(range);
  };
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const auto& owners = checker_.latest()->ranges[r].owners;
    for (const core::RangeOwner& owner : owners)
      if (!has_all(owner, owners.front().id, r))
        return "range " + std::to_string(r) + " is behind at node " + std::to_string(owner.id);
  }
  return {};
}

}  // namespace starling::sim::detail
