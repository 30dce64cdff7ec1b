/// The other nodes that a node knows of, as membership reports them. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// One thread writes; any thread may read.
class NodeTable {
 public:
  /// A node is believed to be dead once this time has passed since it was declared dead.
  static constexpr std::chrono::milliseconds death_believed_after{400};

  /// Stores a record. Returns whether the node is new, or has changed between live and not live.
  bool update(const core::NodeRecord& record, core::Time now) {
    const std::unique_lock lock{mutex_};
    auto& known = nodes_[record.id];
    const bool has_changed =
        core::is_live(known.record.state) != core::is_live(record.state) || known.record.id == 0;
    known.record = record;
    if (!has_changed) return false;
    known.change = ++changes_;
    declared_dead_at_.erase(record.id);
    if (record.state == core::NodeState::dead) declared_dead_at_[record.id] = now;
    return true;
  }

  /// Removes each node that is not live, for which `is_known(id)` is false, and that is not among
  /// `in_use`, the nodes on which members of jobs run.
  template <class IsKnown>
  void remove_dead(IsKnown is_known, const std::set<wire::NodeId>& in_use, core::Time now) {
    const std::unique_lock lock{mutex_};
    std::erase_if(declared_dead_at_,
                  [&](const auto& death) { return now > death.second + death_believed_after; });
    std::erase_if(nodes_, [&](const auto& node) {
      return !core::is_live(node.second.record.state) && !is_known(node.first) &&
             !in_use.contains(node.first);
    });
  }

  /// True if the node is alive and not suspected; true for a node that is not known yet. In a
  /// partition this becomes false long before the node is declared dead.
  [[nodiscard]] bool is_responsive(wire::NodeId node) const {
    // A job's node that has no record is new here: remove_dead() keeps the dead nodes of jobs.
    bool is_alive = true;
    visit(node, [&](const auto& record) { is_alive = record.state == core::NodeState::alive; });
    return is_alive;
  }

  /// Calls `use(record)` if the node is known, and returns whether it is. Requires: `use` does not
  /// call this table.
  template <class Use>
  bool visit(wire::NodeId node, Use use) const {
    const std::shared_lock lock{mutex_};
    const auto known = nodes_.find(node);
    if (known == nodes_.end()) return false;
    use(known->second.record);
    return true;
  }

  /// Returns all nodes in the order in which they last came or went. If two processes had the same
  /// name, the later one comes last, because the cluster admits a second node of that name only
  /// when the first is gone.
  [[nodiscard]] std::vector<core::NodeRecord> all() const {
    const std::shared_lock lock{mutex_};
    std::vector<KnownNode> known;
    for (const auto& [id, node] : nodes_) known.push_back(node);
    std::ranges::sort(known, {}, &KnownNode::change);
    std::vector<core::NodeRecord> all;
    for (KnownNode& node : known) all.push_back(std::move(node.record));
    return all;
  }
  /// Returns the live nodes, ascending by id.
  [[nodiscard]] std::vector<core::NodeRecord> live() const {
    std::vector<core::NodeRecord> live = all();
    std::erase_if(live, [](const auto& record) { return !core::is_live(record.state); });
    std::ranges::sort(live, {}, &core::NodeRecord::id);
    return live;
  }

  /// True if a live node has this address.
  [[nodiscard]] bool is_address_in_use(const std::string& address) const {
    const std::shared_lock lock{mutex_};
    return std::ranges::any_of(nodes_, [&](const auto& node) {
      const core::NodeRecord& record = node.second.record;
      return record.address == address && core::is_live(record.state);
    });
  }

  /// True if the node's process has ended for certain: the node is not live, and another one has
  /// its address. That one is live, or is this node, whose address is `own_address`.
  [[nodiscard]] bool is_replaced(wire::NodeId node, const std::string& own_address) const {
    std::string address;
    visit(node, [&](const auto& record) {
      if (!core::is_live(record.state)) address = record.address;
    });
    return !address.empty() && (address == own_address || is_address_in_use(address));
  }

  /// True if the node is live. Returns nullopt if the node is not known, or was declared dead less
  /// than `death_believed_after` ago: when a partition ends, the nodes that were partitioned off
  /// declare all others dead, and the others refute this at once.
  [[nodiscard]] std::optional<bool> is_believed_live(wire::NodeId node, core::Time now) const {
    const std::shared_lock lock{mutex_};
    const auto known = nodes_.find(node);
    if (known == nodes_.end()) return std::nullopt;
    const auto death = declared_dead_at_.find(node);
    if (death != declared_dead_at_.end() && now < death->second + death_believed_after)
      return std::nullopt;
    return core::is_live(known->second.record.state);
  }

 private:
  struct KnownNode {
    core::NodeRecord record;
    /// The number of the node's last change between live and not live. The changes of all nodes are
    /// numbered together.
    std::uint64_t change = 0;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<wire::NodeId, KnownNode> nodes_;
  /// How many such changes there have been so far.
  std::uint64_t changes_ = 0;
  std::map<wire::NodeId, core::Time> declared_dead_at_;
};

}  // namespace starling::actor
