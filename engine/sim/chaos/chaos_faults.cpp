#include "starling/engine/sim/chaos/chaos_run.hpp"

#include <algorithm>

namespace starling::sim::detail {
namespace {

using namespace std::chrono_literals;

/// A member suspects another that was not reachable for longer than this.
constexpr Time silence_max = 150ms;

}  // namespace

void ChaosRun::begin_fault(std::size_t index) {
  const Fault& fault = scenario_.faults[index];
  Machine& machine = machines_[fault.node];
  if (!may_begin(fault) ||
      (!scenario_.exceeds_fault_budget && fault.is_lasting() && !may_last(fault))) {
    ++report_.faults_refused;
    healed_at_ = now();
    --pending_faults_;
    return;
  }
  ++report_.faults[static_cast<std::size_t>(fault.kind)];
  is_active_[index] = true;
  had_lasting_fault_ = had_lasting_fault_ || fault.is_lasting();
  Time lasts = fault.lasts;
  switch (fault.kind) {
    case Fault::Kind::crash:
      deaths_.push_back(now());
      machine.dies_after_effects = fault.after_effects;
      // The process ends within 20 ms, even if no event comes.
      queue_.push(now() + 20ms, Event{.kind = Event::Kind::crash,
                                      .node = fault.node,
                                      .incarnation = machine.incarnation});
      lasts += 20ms;
      break;
    case Fault::Kind::freeze:
      machine.frozen = true;
      machine.frozen_until = std::max(machine.frozen_until, now() + lasts);
      break;
    case Fault::Kind::partition:
    case Fault::Kind::one_way_partition:
      apply_partitions();
      break;
    case Fault::Kind::pair_partition:
      ++pair_partitions_[fault.node];
      ++pair_partitions_[fault.other];
      apply_partitions();
      break;
    case Fault::Kind::suspect:
      ++suspicions_[fault.node];
      suspected_[fault.node] = machine.incarnation;
      break;
    case Fault::Kind::join:
      begin_incarnation(fault.node, false);
      break;
    case Fault::Kind::leave:
      machine.wants_to_leave = true;
      checker_.on_leave(fault.node);
      run_event(fault.node, [](MemberCore& core, const core::MemberContext& c) { core.leave(c); });
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
      if (now() < machine.frozen_until || !std::exchange(machine.frozen, false)) break;
      auto deferred = std::exchange(machine.deferred, {});
      for (Event& event : deferred) queue_.push(now(), std::move(event));
      break;
    }
    case Fault::Kind::partition:
    case Fault::Kind::one_way_partition:
      apply_partitions();
      break;
    case Fault::Kind::pair_partition:
      --pair_partitions_[fault.node];
      --pair_partitions_[fault.other];
      apply_partitions();
      break;
    case Fault::Kind::suspect:
      --suspicions_[fault.node];
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
      network_.block(fault.node, fault.other);
      if (fault.is_two_way) network_.block(fault.other, fault.node);
    }
    if (fault.group == 0) continue;
    for (NodeId from = 0; from < nodes_max; ++from)
      for (NodeId to = 0; to < nodes_max; ++to) {
        const bool inwards = !fault.has_in_group(from) && fault.has_in_group(to);
        const bool outwards = fault.has_in_group(from) && !fault.has_in_group(to);
        if (outwards || (inwards && fault.kind == Fault::Kind::partition)) network_.block(from, to);
      }
  }
}

FaultBudget ChaosRun::fault_budget() const {
  std::vector<NodeCondition> conditions;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    conditions.push_back({.core = machine.running ? machine.core.get() : nullptr,
                          .frozen = machine.frozen,
                          .dying = machine.dies_after_effects.has_value(),
                          .suspected = is_wrongly_suspected(id) || pair_partitions_[id] > 0,
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

/// Returns true if a lasting fault may begin: if no other fault is active, no member joins or
/// leaves, no range moves, and the nodes that go on without the others can do so for good.
bool ChaosRun::may_last(const Fault& fault) const {
  if (std::ranges::count(is_active_, true) > 0 || !is_settled()) return false;
  if (fault.kind == Fault::Kind::partition || fault.kind == Fault::Kind::one_way_partition)
    return fault_budget().allows_lasting_partition(fault.group);
  if (fault.kind == Fault::Kind::pair_partition && !fault_budget().allows_death(fault.other))
    return false;
  return fault_budget().allows_death(fault.node);
}

/// Returns true if at present no member joins or leaves, and no range moves to other owners.
bool ChaosRun::is_settled() const {
  const core::Configuration& latest = *checker_.latest();
  const auto joins_or_leaves = [&](const Machine& machine) {
    return machine.running && (machine.wants_to_leave ||
                               !latest.contains(machine.core->self().id, machine.incarnation));
  };
  return pending_rejoins_ == 0 && std::ranges::none_of(machines_, joins_or_leaves) &&
         why_ranges_move().empty();
}

bool ChaosRun::has_lasting_fault() const {
  for (std::size_t i = 0; i < scenario_.faults.size(); ++i)
    if (is_active_[i] && scenario_.faults[i].is_lasting()) return true;
  return false;
}

/// Returns true if the fault is possible now and does not exceed the fault budget. A lasting fault
/// must also satisfy may_last().
bool ChaosRun::may_begin(const Fault& fault) const {
  if (!scenario_.exceeds_fault_budget && has_lasting_fault())
    return false;  // the job may have gone on without the node of this fault
  const Machine& machine = machines_[fault.node];
  if (fault.kind == Fault::Kind::join) return machine.incarnation == 0;
  if (fault.kind == Fault::Kind::partition || fault.kind == Fault::Kind::one_way_partition)
    return scenario_.exceeds_fault_budget || fault_budget().allows_partition(fault.group);
  if (!machine.running || machine.dies_after_effects ||
      machine.core->state() == MemberCore::State::excluded)
    return false;
  if (fault.kind ==
      Fault::Kind::pair_partition)  // the job may exclude one of the two, then the other
    return scenario_.exceeds_fault_budget ||
           fault_budget().allows_suspicion(fault.node, fault.other);
  if (fault.kind == Fault::Kind::leave)
    return !machine.wants_to_leave && machine.core->state() == MemberCore::State::member &&
           is_dispensable(fault.node);
  if (scenario_.exceeds_fault_budget) return true;
  return fault.kind == Fault::Kind::crash ? fault_budget().allows_death(fault.node)
                                          : fault_budget().allows_suspicion(fault.node);
}

/// Returns true if the node may leave: if enough members with the same parts (worker, owner) stay,
/// or if the node is neither a worker nor an owner.
bool ChaosRun::is_dispensable(NodeId node) const {
  const core::Member self = job_.member(node, 1);
  if (!self.works && !self.owns) return true;
  std::size_t count = 0;
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    const core::Member other = job_.member(id, 1);
    const bool stays = machine.running && !machine.wants_to_leave &&
                       machine.core->state() == MemberCore::State::member;
    count += stays && other.works == self.works && other.owns == self.owns ? 1 : 0;
  }
  return count > std::max<std::size_t>(2, scenario_.replication_factor);
}

// --- failure detection, and the end of the run --------------------------------------------------

/// Returns true if `from` is a running member that `to` receives messages from.
bool ChaosRun::is_reachable(NodeId from, NodeId to) const {
  const Machine& sender = machines_[from];
  return sender.running && !sender.frozen && sender.core->state() == MemberCore::State::member &&
         !network_.is_blocked(from, to);
}

/// Returns true if an active fault makes all others suspect the present incarnation of the node.
bool ChaosRun::is_wrongly_suspected(NodeId node) const {
  return suspicions_[node] > 0 && suspected_[node] == machines_[node].incarnation;
}

/// Makes the active suspicions of a node concern its present incarnation, too, once this
/// incarnation is a member and the fault budget allows it. The budget may not allow it: two members
/// that have joined again may be the only ones that receive the state of a range.
void ChaosRun::extend_suspicions() {
  for (NodeId node = 0; node < nodes_max; ++node) {
    const core::Incarnation present = machines_[node].incarnation;
    if (suspicions_[node] > 0 && checker_.latest()->contains(node, present) &&
        (scenario_.exceeds_fault_budget || fault_budget().allows_suspicion(node)))
      suspected_[node] = present;
  }
}

/// Makes every member suspect the members that were not reachable for too long or are wrongly
/// suspected, and trust the others.
void ChaosRun::detect_failures() {
  extend_suspicions();
  for (NodeId id = 0; id < nodes_max; ++id) {
    Machine& machine = machines_[id];
    if (!machine.running || machine.frozen || machine.core->state() != MemberCore::State::member)
      continue;
    const core::ConfigurationPtr known = machine.core->configuration();
    for (const core::Member& member : known->members) {
      if (member.id == id) continue;
      auto& [incarnation, at] = machine.last_alive[member.id];
      const bool is_current = machines_[member.id].incarnation == member.incarnation;
      if (incarnation != member.incarnation || (is_current && is_reachable(member.id, id))) {
        incarnation = member.incarnation;
        at = now();
      }
      // The limit depends on the member, so that not all suspect at the same time.
      const bool should_suspect = is_wrongly_suspected(member.id) ||
                                  now() > at + silence_max + Time{detection_interval * (id % 3)};
      if (should_suspect == machine.core->suspects(member.id)) continue;
      run_event(id, [&](MemberCore& core, const core::MemberContext& c) {
        if (should_suspect)
          core.suspect(c, member.id, member.incarnation);
        else
          core.trust(c, member.id, member.incarnation);
      });
      if (!machine.running || machine.core->state() != MemberCore::State::member) break;
    }
  }
}

bool ChaosRun::is_finished() const { return why_not_finished().empty(); }

/// Returns true unless the node is an owner, and the other owners that stay are fewer than the
/// replication factor.
bool ChaosRun::may_leave(NodeId id) const {
  const core::Configuration& latest = *checker_.latest();
  const auto* self = latest.find(id);
  if (self == nullptr || !self->owns) return true;
  const auto others = std::ranges::count_if(latest.members, [&](const core::Member& member) {
    return member.owns && !machines_[member.id].wants_to_leave;
  });
  return others >= scenario_.replication_factor;
}

/// Returns the first reason found why the run is not finished; empty if it is finished.
std::string ChaosRun::why_not_finished() const {
  if (pending_rejoins_ > 0) return "an incarnation has not begun yet";
  for (NodeId id = 0; id < nodes_max; ++id) {
    const Machine& machine = machines_[id];
    // A member that has given up without ending the job counts as excluded.
    const MemberCore::State state =
        machine.core ? machine.core->state() : MemberCore::State::excluded;
    const bool is_gone = state == MemberCore::State::excluded || state == MemberCore::State::failed;
    if (!machine.running || is_gone) continue;
    const auto who = "node " + std::to_string(id) + " (incarnation " +
                     std::to_string(machine.incarnation) + ") ";
    if (machine.wants_to_leave && may_leave(id)) return who + "has not left";
    if (machine.core->state() != MemberCore::State::member) return who + "is not a member";
    const core::Worker* worker = machine.core->role<core::Training>().worker();
    if (worker != nullptr && !worker->is_done())
      return who + "is at step " + std::to_string(worker->step()) + " of " +
             std::to_string(scenario_.steps);
    if (worker != nullptr && !machine.core->role<core::Training>().is_done())
      return who + "has not handed on its last steps";
    if (machine.core->configuration() != checker_.latest() &&
        *machine.core->configuration() != *checker_.latest())
      return who + "is in an old epoch";
  }
  const core::Configuration& latest = *checker_.latest();
  for (const core::Member& member : latest.members)
    if (!machines_[member.id].running || machines_[member.id].incarnation != member.incarnation)
      return "member " + std::to_string(member.id) + " is dead";
  const std::string moves = why_ranges_move();
  return moves.empty() ? why_replicas_differ() : moves;
}

/// Describes a range that an owner does not hold yet or is to give up, or that could have more
/// owners. Returns an empty text if there is no such range.
std::string ChaosRun::why_ranges_move() const {
  const core::Configuration& latest = *checker_.latest();
  const auto staying_members = std::ranges::count_if(
      latest.members,
      [&](const core::Member& member) { return !machines_[member.id].wants_to_leave; });
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const auto holders = checker_.holders(latest, r);
    if (holders.size() < std::min<std::size_t>(scenario_.replication_factor, staying_members))
      return "a range has too few owners";
    for (const core::RangeOwner& owner : holders)
      if (owner.retiring || checker_.full_owner(r, owner) == nullptr)
        return "range " + std::to_string(r) + " is moving";
  }
  return {};
}

/// Describes a range of which an owner lacks updates that the primary has. Returns an empty text if
/// there is no such range.
std::string ChaosRun::why_replicas_differ() const {
  for (core::RangeId r = 0; r < scenario_.ranges; ++r) {
    const auto holders = checker_.holders(*checker_.latest(), r);
    for (const core::RangeOwner& holder : holders)
      if (checker_.oracle().is_behind(*machines_[holder.id].core,
                                      *machines_[holders.front().id].core, r))
        return "range " + std::to_string(r) + " is behind at node " + std::to_string(holder.id);
  }
  return {};
}

}  // namespace starling::sim::detail
