/// Deterministic simulation testing: runs a small replicated job of core::MemberCore, the same
/// cores that run live, through a scenario of faults. A run checks after every event the invariants
/// that must always hold (invariant_checker.hpp), and after the last fault that every member
/// finishes and that all replicas are equal.
///
/// Not thread-safe, but several threads may each run a scenario. A run is a function of its
/// scenario and, in tests, of its Sabotage.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"
#include "starling/engine/sim/network.hpp"

namespace starling::sim {

/// The result of a run.
struct ChaosReport {
  /// Empty if every invariant held; else a description of the violation, with node, range and step.
  std::string violation;
  /// The virtual time at the end, or at the violation.
  Time end{};
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
  /// The number of steps that all workers together finished, and the last configuration's epoch.
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  /// The number of incarnations of members, and of incarnations that were declared dead while their
  /// process ran.
  std::uint64_t incarnations = 0;
  std::uint64_t excluded = 0;
  /// The number of faults that began, by kind, and the number of faults that were left out because
  /// they would have exceeded the fault budget or were not possible at their time.
  std::array<std::uint64_t, Fault::kinds> faults{};
  std::uint64_t faults_refused = 0;
  /// The number of barrier passes that were checked.
  std::uint64_t passes = 0;
  /// True if the job ended with an error or no member was left. Only a scenario with
  /// `exceeds_fault_budget` allows this.
  bool gave_up = false;
};

class ChaosWorld;

/// Changes messages, or the barrier of the cores, so that a core appears to be broken. Tests use a
/// Sabotage to show that the checker finds such a core.
class Sabotage {
 public:
  virtual ~Sabotage() = default;
  /// Called when a packet arrives at a node; may change the packet. Returns false to drop it.
  [[nodiscard]] virtual bool on_arrival(ChaosWorld& world, core::Envelope& envelope) = 0;
  /// Returns the barrier by which the cores decide, in place of the scenario's barrier. The checker
  /// judges them by the scenario's barrier.
  [[nodiscard]] virtual barrier::Barrier barrier_of_cores(const barrier::Barrier& of_scenario) {
    return of_scenario;
  }
};

/// The operations by which a Sabotage observes and disturbs a run.
class ChaosWorld {
 public:
  virtual ~ChaosWorld() = default;
  [[nodiscard]] virtual Time now() const = 0;
  /// Returns the core of node `id`; nullptr if its process does not run.
  [[nodiscard]] virtual core::MemberCore* node(NodeId id) = 0;
  /// At `at`, delivers a message to `to` without a channel, as if the present incarnation of `from`
  /// had sent it. The checker does not learn that it was sent: the core of `to` appears broken.
  virtual void forge_arrival(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
  /// Like forge_arrival(), but the checker takes the message for one that `from` sent: the core of
  /// `from` appears broken.
  virtual void forge_sending(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
};

/// Runs the scenario until it is finished or an invariant is violated.
[[nodiscard]] ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage = nullptr);

/// Returns true if both texts describe the same kind of violation, though perhaps of different
/// members, ranges and steps.
[[nodiscard]] bool is_alike(std::string_view violation, std::string_view other);

/// Removes from a failing scenario the faults and network effects (loss, duplication, reordering)
/// that are not needed for the same kind of violation, and returns what remains. Runs at most
/// `attempts` smaller scenarios.
[[nodiscard]] Scenario shrink(Scenario scenario, std::size_t attempts = 200,
                              Sabotage* sabotage = nullptr);

}  // namespace starling::sim
