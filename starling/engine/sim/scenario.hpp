/// What a run of deterministic simulation testing is made of: a small job, and what goes wrong in
/// it. Drawn from a seed, written to files, cut down to what still fails. Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/network.hpp"

namespace starling::sim {

/// One thing that goes wrong, or that someone wants.
struct Fault {
  enum class Kind {
    /// The process ends in the middle of an event; a new incarnation joins `lasts` later, if ever.
    crash,
    /// The process does nothing for a while, and knows nothing of it.
    freeze,
    /// Those in `group` and the others hear nothing of one another for a while.
    cut,
    /// The others hear nothing of those in `group` for a while.
    deafen,
    /// `other` hears nothing of the node for a while; nor does the node of it, where `both`.
    pair,
    /// All suspect the node for a while, though it is well.
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
  /// 0 for a crash: for good.
  Time lasts{};
  /// crash: how many effects of the event are still carried out.
  std::uint32_t after_effects = 0;
  /// cut, deafen: bit i stands for node i.
  std::uint64_t group = 0;
  /// pair.
  NodeId other = 0;
  bool both = false;

  /// True for the nodes in `group`.
  [[nodiscard]] bool concerns(NodeId id) const { return (group >> id) % 2 == 1; }
  /// Longer than a job without a decision lasts.
  [[nodiscard]] bool endures() const;

  bool operator==(const Fault&) const = default;
};

[[nodiscard]] std::string_view name(Fault::Kind kind);

struct Scenario {
  /// Of everything that is drawn while it runs.
  std::uint64_t seed = 1;
  core::Mode mode = core::Mode::peer;
  barrier::Barrier barrier;
  barrier::Recheck recheck = barrier::Recheck::distributed();
  /// Workers that are there from the beginning; peers in peer mode. Numbered from 0.
  std::uint32_t workers = 5;
  /// Servers, numbered after the workers; none in peer mode. In central mode one follows
  /// that does nothing but keep the steps.
  std::uint32_t servers = 0;
  std::uint32_t ranges = 4;
  std::uint32_t copies = 2;
  core::Step steps = 12;
  double loss = 0;
  double duplication = 0;
  double reordering = 0;
  /// Means, and how many times longer worker 0 computes.
  Time latency = std::chrono::milliseconds{1};
  Time compute = std::chrono::milliseconds{5};
  double straggling = 1;
  /// True where crashes happen that nobody can promise to survive: then the job may end with an
  /// error, but never with a wrong result.
  bool beyond = false;
  std::vector<Fault> faults;

  [[nodiscard]] bool has_coordinator() const { return core::keeps_steps_centrally(mode); }
  /// Nodes that are there from the beginning.
  [[nodiscard]] std::uint32_t founders() const {
    return workers + servers + (has_coordinator() ? 1U : 0U);
  }
  /// The first, in central mode; its successor is the lowest of the others, as long as none of them
  /// was let in without work.
  [[nodiscard]] NodeId coordinator() const { return workers + servers; }

  bool operator==(const Scenario&) const = default;
};

/// Whoever suspects another this long, and nobody decides, ends the job: see core::CouncilOptions,
/// whose times would make long runs of it.
inline constexpr Time patience = std::chrono::seconds{10};

/// Nodes of a scenario, with those that join later, are numbered below this.
inline constexpr std::uint32_t nodes_max = 24;

/// The scenario of a seed.
[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);

/// A text of lines `key value`, the last of them the number of faults, which parse_scenario reads
/// back; `#` begins a comment.
[[nodiscard]] std::string print(const Scenario& scenario);

/// Refuses what is not whole, unknown keys, and what could not be run to its end in the time that a
/// run is given, naming the line.
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text);

}  // namespace starling::sim
