/// A scenario of deterministic simulation testing: a small job, its network, and the faults that
/// happen to it. A scenario is drawn from a seed or read from a file. Plain values; thread-safe to
/// read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/network.hpp"

namespace starling::sim {

/// A set of nodes: bit i stands for node i.
using NodeSet = std::uint64_t;

/// A change in the run: a fault, or a member that joins or leaves. The code calls all of them
/// faults.
struct Fault {
  enum class Kind {
    /// The process ends in the middle of an event. A new incarnation joins after `lasts`, unless
    /// that is 0.
    crash,
    /// The process does nothing for a while, and does not notice that time has passed.
    freeze,
    /// The nodes in `group` and the others receive nothing from one another for a while.
    partition,
    /// The others receive nothing from the nodes in `group` for a while.
    one_way_partition,
    /// `other` receives nothing from `node` for a while. If `is_two_way`, `node` receives nothing
    /// from `other` either.
    pair_partition,
    /// All others suspect the node for a while, although it is healthy.
    suspect,
    /// A new member wants to join.
    join,
    /// The node wants to leave.
    leave,
  };
  /// The number of kinds.
  static constexpr std::size_t kinds = 8;

  Kind kind = Kind::crash;
  NodeId node = 0;
  /// When the fault begins, from the start of the run.
  Time at{};
  /// How long the fault lasts; 0 for `join` and `leave`.
  Time lasts{};
  /// crash: the process ends after this many effects of an event, or after all of them if the event
  /// has fewer.
  std::uint32_t after_effects = 0;
  /// partition, one_way_partition: the nodes on one side.
  NodeSet group = 0;
  /// pair_partition: the other node, and whether both directions are blocked.
  NodeId other = 0;
  bool is_two_way = false;

  /// Returns true if `group` contains node `id`.
  [[nodiscard]] bool has_in_group(NodeId id) const { return (group >> id) % 2 == 1; }
  /// Returns true if the fault lasts longer than `stuck_after`. Meanwhile the job may end, or go on
  /// without the node.
  [[nodiscard]] bool is_lasting() const;

  bool operator==(const Fault&) const = default;
};

/// Returns the name of a kind in scenario files and reports: that of its constant, with hyphens.
[[nodiscard]] std::string_view name(Fault::Kind kind);

struct Scenario {
  /// The seed of everything that is drawn while the scenario runs.
  std::uint64_t seed = 1;
  core::Mode mode = core::Mode::peer;
  /// The name of an exchange (core/training/exchanges.hpp).
  std::string exchange = "owners";
  /// True if workers keep what they have read; see core::ExchangeOptions::cache.
  bool cache = false;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// The number of workers at the beginning; they are peers in peer mode. Their nodes are numbered
  /// from 0.
  std::uint32_t workers = 5;
  /// The number of servers; 0 in peer mode. Their nodes have the numbers after the workers. If the
  /// mode has a coordinator, one more node follows, which is only the coordinator.
  std::uint32_t servers = 0;
  std::uint32_t ranges = 4;
  std::uint32_t replication_factor = 2;
  /// The steps of each worker. In half of the scenarios, a number of epochs of about as many steps
  /// ends the workers instead (ChaosJob::deal()).
  core::Step steps = 12;
  /// The shares of packets that are lost, duplicated and reordered, as in LinkOptions.
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  /// The mean latency of a packet.
  Time latency = std::chrono::milliseconds{1};
  /// The mean time to compute an update.
  Time compute = std::chrono::milliseconds{5};
  /// Worker 0 takes this many times as long to compute an update.
  double straggling = 1;
  /// True if faults may exceed what a job must survive (see FaultBudget): the job may then end with
  /// an error, but never with a wrong result.
  bool exceeds_fault_budget = false;
  std::vector<Fault> faults;

  [[nodiscard]] bool has_coordinator() const { return core::keeps_steps_centrally(mode); }
  /// Returns the number of nodes at the beginning.
  [[nodiscard]] std::uint32_t initial_nodes() const {
    return workers + servers + (has_coordinator() ? 1U : 0U);
  }
  /// Returns the node of the first coordinator. If this coordinator ends, its successor is a member
  /// that has joined and is neither a worker nor an owner or, if there is none, the lowest of the
  /// other nodes. Requires: has_coordinator().
  [[nodiscard]] NodeId coordinator() const { return workers + servers; }

  bool operator==(const Scenario&) const = default;
};

/// The core::CouncilOptions::stuck_after of scenarios, shorter than the default to keep runs short:
/// a member ends the job if it suspects another for this long and the council decides nothing.
inline constexpr Time stuck_after = std::chrono::seconds{10};

/// All node numbers of a scenario are below this, also those of nodes that join later.
inline constexpr std::uint32_t nodes_max = 24;

/// Returns the predicates that scenarios may have as barriers, beside the built-in rules. With
/// `soon`, a worker waits for others that are behind and whose last interval between pushes makes
/// their next push likely within 10 ms of its own.
[[nodiscard]] std::span<const barrier::Predicate> scenario_predicates();

/// Draws the scenario of a seed.
[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

/// Returns a text that parse_scenario() reads back. Each line has a key and a value. Each fault has
/// a line with the key `fault`. The last line has the key `faults` and the number of these lines,
/// so that a text that was cut off is an error. `#` begins a comment.
[[nodiscard]] std::string print(const Scenario& scenario);

/// Parses a scenario. Returns an Error if the text is incomplete, has an unknown key or a bad
/// value, or describes a run that would take too long. The Error names the line if it is about one
/// line.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text);

}  // namespace starling::sim
