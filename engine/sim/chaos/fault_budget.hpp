/// Decides which faults a replicated job must survive. The guarantee: no acknowledged update is
/// lost and the job goes on, as long as at any time a majority of the council lives and every range
/// has some owner that no member suspects.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/sim/chaos/invariant_checker.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {

/// The true condition of a node, which only the simulation knows.
struct Condition {
  /// The node's core; nullptr where no process runs.
  const InvariantChecker::MemberCore* node = nullptr;
  bool frozen = false;
  /// Its process is about to end.
  bool dying = false;
  /// A fault makes others suspect it.
  bool suspected = false;
  bool leaving = false;
};

class FaultBudget {
 public:
  /// `groups` are the groups of nodes that are partitioned from the others now, and `deaths` counts
  /// the processes that were killed so recently that some members may not know it yet.
  FaultBudget(const Scenario& scenario, const InvariantChecker& checker,
              std::vector<Condition> conditions, std::vector<std::uint64_t> groups,
              std::size_t deaths);

  /// True where `node` may be silent for a while, or be declared dead by mistake.
  [[nodiscard]] bool allows_doubt(NodeId node) const { return keeps_ranges(mask(node)); }
  /// True where that may happen to either node, and then to the other.
  [[nodiscard]] bool allows_doubt(NodeId node, NodeId other) const {
    return keeps_ranges(mask(node) | mask(other));
  }
  [[nodiscard]] bool allows_death(NodeId node) const {
    return keeps_ranges(mask(node)) && keeps_councils(mask(node));
  }
  /// True where the nodes in `group` may be partitioned from the others, in one direction or both.
  [[nodiscard]] bool allows_cut(std::uint64_t group) const;
  /// True where such a partition may last so long that one side must go on for good.
  [[nodiscard]] bool allows_parting(std::uint64_t group) const;

 private:
  static constexpr std::uint64_t everyone = (std::uint64_t{1} << nodes_max) - 1;

  [[nodiscard]] static std::uint64_t mask(NodeId node) { return std::uint64_t{1} << node; }
  [[nodiscard]] static bool has(std::uint64_t set, NodeId node) { return (set >> node) % 2 == 1; }
  [[nodiscard]] bool is_well(NodeId node, std::uint64_t side) const;
  [[nodiscard]] bool holds(core::RangeId range, const core::RangeOwner& owner) const;
  [[nodiscard]] bool keeps_ranges(std::uint64_t without) const;
  [[nodiscard]] bool keeps_ranges(std::uint64_t group, std::uint64_t without) const;
  [[nodiscard]] bool is_held(core::RangeId range, std::uint64_t side, std::uint64_t without) const;
  [[nodiscard]] bool keeps_councils(std::uint64_t without) const;
  [[nodiscard]] bool has_quorum(const core::Configuration& configuration,
                                std::uint64_t without) const;

  const Scenario& scenario_;
  const InvariantChecker& checker_;
  std::vector<Condition> conditions_;
  std::vector<std::uint64_t> groups_;
  std::size_t deaths_;
};

}  // namespace starling::sim
