/// Decides whether a fault may be injected into a replicated job that must survive it. The job
/// loses no acknowledged update and does not stop as long as, at any time, a majority of the
/// council lives and every range has some owner that no member suspects. The budget allows only
/// faults after which this holds. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "starling/engine/sim/chaos/invariant_checker.hpp"
#include "starling/engine/sim/chaos/scenario.hpp"

namespace starling::sim {

/// The true condition of a node, which other nodes cannot know.
struct NodeCondition {
  /// The member that the node's process runs, without actors and network; nullptr if no process
  /// runs.
  const InvariantChecker::MemberCore* core = nullptr;
  bool frozen = false;
  /// True if its process is about to end.
  bool dying = false;
  /// True if a fault makes other nodes suspect it.
  bool suspected = false;
  bool leaving = false;
};

/// The budget at one moment, with the faults that are active then.
class FaultBudget {
 public:
  /// `conditions` has an entry for each node. `groups` are the groups of nodes that are partitioned
  /// from the others now. `deaths` is the number of processes that were killed so recently that
  /// some members may not know it yet. Requires: `scenario` and `checker` outlive this object.
  FaultBudget(const Scenario& scenario, const InvariantChecker& checker,
              std::vector<NodeCondition> conditions, std::vector<NodeSet> groups,
              std::size_t deaths);

  /// Returns true if the budget allows a fault that silences `node` for a while, so that others
  /// suspect it, or declare it dead by mistake.
  [[nodiscard]] bool allows_suspicion(NodeId node) const {
    return ranges_survive_without(set_of(node));
  }
  /// Returns true if the budget allows such a fault of `node` and then one of `other`.
  [[nodiscard]] bool allows_suspicion(NodeId node, NodeId other) const {
    return ranges_survive_without(set_of(node) | set_of(other));
  }
  /// Returns true if the budget allows the process of `node` to end.
  [[nodiscard]] bool allows_death(NodeId node) const {
    return ranges_survive_without(set_of(node)) && councils_survive_without(set_of(node));
  }
  /// Returns true if the budget allows a partition of the nodes in `group` from the others, in one
  /// direction or both.
  [[nodiscard]] bool allows_partition(NodeSet group) const;
  /// Returns true if the budget allows this partition to last so long that one side goes on without
  /// the other for good.
  [[nodiscard]] bool allows_lasting_partition(NodeSet group) const;

 private:
  static constexpr NodeSet all_nodes = (NodeSet{1} << nodes_max) - 1;

  [[nodiscard]] static NodeSet set_of(NodeId node) { return NodeSet{1} << node; }
  [[nodiscard]] static bool contains(NodeSet set, NodeId node) { return (set >> node) % 2 == 1; }
  [[nodiscard]] bool is_healthy(NodeId node, NodeSet side) const;
  [[nodiscard]] bool keeps_all_updates(core::RangeId range, const core::RangeOwner& owner) const;
  [[nodiscard]] bool ranges_survive_without(NodeSet without) const;
  [[nodiscard]] NodeSet smaller_side(NodeSet group) const;
  [[nodiscard]] bool ranges_survive_partition(NodeSet group, NodeSet without) const;
  [[nodiscard]] bool has_safe_owner(core::RangeId range, NodeSet side, NodeSet without) const;
  [[nodiscard]] bool councils_survive_without(NodeSet without) const;
  [[nodiscard]] bool has_quorum(const core::Configuration& configuration, NodeSet without) const;

  const Scenario& scenario_;
  const InvariantChecker& checker_;
  std::vector<NodeCondition> conditions_;
  std::vector<NodeSet> groups_;
  std::size_t deaths_;
};

}  // namespace starling::sim
