/// Deterministic simulation testing: runs a small replicated job of core::MemberCore, the very
/// cores that run live, through a scenario of faults. Checks after every event the invariants that
/// must always hold (invariant_checker.hpp), and after healing that every member finishes and that
/// all replicas are equal.
///
/// Not thread-safe; several threads may run one job each. A run is a function of its scenario and,
/// in tests, of its Sabotage.
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

struct ChaosReport {
  /// Empty if every invariant held; else the violated invariant, and where.
  std::string violation;
  /// Virtual time at the end, or at the violation.
  Time end{};
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  /// Incarnations of members, and those declared dead while their process ran.
  std::uint64_t incarnations = 0;
  std::uint64_t excluded = 0;
  /// Faults that began, by kind, and faults left out, because they would have exceeded the fault
  /// budget or came too late.
  std::array<std::uint64_t, Fault::kinds> faults{};
  std::uint64_t faults_refused = 0;
  /// How many barrier passes were judged.
  std::uint64_t passes = 0;
  /// The job ended with an error, which a scenario with `beyond` allows.
  bool gave_up = false;
};

class ChaosWorld;

/// Breaks a core from outside, in tests which show that the checker finds the breakage.
class Sabotage {
 public:
  virtual ~Sabotage() = default;
  /// Called when a packet arrives at a node; may change the packet. Returns false to drop it.
  [[nodiscard]] virtual bool on_arrival(ChaosWorld& world, core::Envelope& envelope) = 0;
};

/// The operations by which a Sabotage observes and disturbs a run.
class ChaosWorld {
 public:
  virtual ~ChaosWorld() = default;
  [[nodiscard]] virtual Time now() const = 0;
  /// Returns the core of node `id`; nullptr where its process does not run.
  [[nodiscard]] virtual core::MemberCore<double>* node(NodeId id) = 0;
  /// Delivers a message to `to` at `at`, past the channel, as if the incarnation of `from` at that
  /// time had sent it, though it has not: the core of `to` is the broken one.
  virtual void whisper(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
  /// Like whisper(), but records the message as sent by `from`: the core of `from` is the broken
  /// one.
  virtual void inject(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
};

[[nodiscard]] ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage = nullptr);

/// True where both texts name the same violation, perhaps of other members, ranges and steps.
[[nodiscard]] bool is_alike(std::string_view violation, std::string_view other);

/// Removes from a failing scenario the faults and network effects (loss, duplication, reordering)
/// without which it still fails in the same way. Tries at most `attempts` smaller scenarios.
[[nodiscard]] Scenario shrink(Scenario scenario, std::size_t attempts = 200,
                              Sabotage* sabotage = nullptr);

}  // namespace starling::sim
