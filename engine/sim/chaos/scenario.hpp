/// A scenario of deterministic simulation testing: a small job, and the faults in it. Drawn from a
/// seed, written to files, shrunk to a smaller one that still fails. Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/network.hpp"

namespace starling::sim {

/// A set of nodes: bit i stands for node i.
using NodeSet = std::uint64_t;

/// One fault, or one member that joins or leaves.
struct Fault {
  enum class Kind {
    /// The process ends in the middle of an event; a new incarnation joins `lasts` later, if ever.
    crash,
    /// The process does nothing for a while, and does not notice the gap.
    freeze,
    /// The nodes in `group` and the others receive nothing from one another for a while.
    partition,
    /// The others receive nothing from the nodes in `group` for a while.
    one_way_partition,
    /// `other` receives nothing from `node` for a while.
    /// If `both`, `node` receives nothing from `other` either.
    pair_partition,
    /// All others suspect the node for a while, though it is healthy.
    suspect,
    /// A new member wants to join.
    join,
    /// The node wants to leave.
    leave,
  };
  static constexpr std::size_t kinds = 8;

  Kind kind = Kind::crash;
  NodeId node = 0;
  Time at{};
  /// 0 for a crash: no new incarnation joins.
  Time lasts{};
  /// crash: how many effects of the event are still executed.
  std::uint32_t after_effects = 0;
  /// partition, one_way_partition: the nodes on one side.
  NodeSet group = 0;
  /// pair_partition only, as is `both`.
  NodeId other = 0;
  bool both = false;

  /// Returns true if `group` contains the node.
  [[nodiscard]] bool has_in_group(NodeId id) const { return (group >> id) % 2 == 1; }
  /// Returns true if the fault lasts longer than a job goes on without a decision (see `patience`).
  [[nodiscard]] bool endures() const;

  bool operator==(const Fault&) const = default;
};

/// Returns the name in scenario files and reports: `crash`, `freeze`, `cut` (partition), `deafen`
/// (one_way_partition), `pair` (pair_partition), `suspect`, `join`, `leave`.
[[nodiscard]] std::string_view name(Fault::Kind kind);

struct Scenario {
  /// Seed of everything that is drawn while the scenario runs.
  std::uint64_t seed = 1;
  core::Mode mode = core::Mode::peer;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// Workers that are there from the beginning; peers in peer mode. Numbered from 0.
  std::uint32_t workers = 5;
  /// Servers, numbered after the workers; 0 in peer mode. In central mode one more node follows,
  /// which only keeps the steps.
  std::uint32_t servers = 0;
  std::uint32_t ranges = 4;
  std::uint32_t copies = 2;
  core::Step steps = 12;
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  /// Mean latency, mean time of a step, and how many times longer worker 0 computes.
  Time latency = std::chrono::milliseconds{1};
  Time compute = std::chrono::milliseconds{5};
  double straggling = 1;
  /// True if faults may exceed what a job must survive (see FaultBudget): the job may then end with
  /// an error, but never with a wrong result.
  bool beyond = false;
  std::vector<Fault> faults;

  [[nodiscard]] bool has_coordinator() const { return core::keeps_steps_centrally(mode); }
  /// Nodes that are there from the beginning.
  [[nodiscard]] std::uint32_t founders() const {
    return workers + servers + (has_coordinator() ? 1U : 0U);
  }
  /// The first coordinator, in central mode; its successor is the lowest of the others, as long as
  /// no member was let in without work.
  [[nodiscard]] NodeId coordinator() const { return workers + servers; }

  bool operator==(const Scenario&) const = default;
};

/// A member that suspects another this long, without a decision, ends the job: see
/// core::CouncilOptions, whose own times would make runs long.
inline constexpr Time patience = std::chrono::seconds{10};

/// Bound of the node numbers of a scenario, with nodes that join later.
inline constexpr std::uint32_t nodes_max = 24;

/// Draws the scenario of a seed.
[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

/// Returns a text of lines `key value`, which parse_scenario reads back; the last line is the
/// number of faults, and `#` begins a comment.
[[nodiscard]] std::string print(const Scenario& scenario);

/// Parses a scenario. Refuses, naming the line, incomplete texts, unknown keys, and scenarios that
/// could not be run to their end in the time that a run is given.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text);

}  // namespace starling::sim
