/// Deterministic simulation testing: runs a small replicated job of core::MemberCore, the very
/// cores that run live, through a scenario of faults, and judges after every event what must hold
/// always (invariant_checker.hpp), and after healing that everyone comes to the end and all copies
/// are equal.
///
/// One at a time; not thread-safe; threads run one each. A run is a function of its scenario, and,
/// in tests, of what sabotages it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "starling/engine/core/member_core.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/scenario.hpp"

namespace starling::sim {

struct ChaosReport {
  /// Empty where all held; else the invariant that did not, and where.
  std::string violation;
  /// Virtual time at the end, or when it was violated.
  Time end{};
  std::uint64_t events = 0;
  std::uint64_t packets = 0;
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  /// Lives of members, and those that were declared dead though they were well.
  std::uint64_t lives = 0;
  std::uint64_t excluded = 0;
  /// Faults carried out, by kind, and those left out: they would have gone beyond what is promised,
  /// or came too late.
  std::array<std::uint64_t, Fault::kinds> faults{};
  std::uint64_t faults_refused = 0;
  /// Draws of barriers that let a worker pass were judged so often.
  std::uint64_t passes = 0;
  /// The job was ended with an error, as it may beyond what is promised.
  bool gave_up = false;
};

class ChaosWorld;

/// Breaks a core from outside, in tests that show that the breakage is found.
class Sabotage {
 public:
  virtual ~Sabotage() = default;
  /// A packet arrives at a node; false drops it. May change it.
  [[nodiscard]] virtual bool on_arrival(ChaosWorld& world, core::Envelope& envelope) = 0;
};

/// What a saboteur may do.
class ChaosWorld {
 public:
  virtual ~ChaosWorld() = default;
  [[nodiscard]] virtual Time now() const = 0;
  /// nullptr where the process does not run.
  [[nodiscard]] virtual core::MemberCore<double>* node(NodeId id) = 0;
  /// Has `to` hear at `at`, past the channel, what `from` would have said in its present
  /// incarnation, and has not: the core of `to` is what is broken.
  virtual void whisper(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
  /// Has `from` say so: its core is what is broken.
  virtual void inject(Time at, NodeId from, NodeId to, core::PeerMessage peer_message) = 0;
};

[[nodiscard]] ChaosReport run_chaos(const Scenario& scenario, Sabotage* sabotage = nullptr);

/// True where both say the same of perhaps other members, ranges and steps.
[[nodiscard]] bool is_alike(std::string_view violation, std::string_view other);

/// Leaves out of a scenario that fails whatever it fails in the same way without: faults, and what
/// the network does. Tries at most `attempts` runs.
[[nodiscard]] Scenario shrink(Scenario scenario, std::size_t attempts = 200,
                              Sabotage* sabotage = nullptr);

}  // namespace starling::sim
