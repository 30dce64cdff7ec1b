/// The other nodes that a node knows of, as membership reports them. Internal to ClusterNode.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
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
        core::is_live(known.state) != core::is_live(record.state) || known.id == 0;
    known = record;
    if (!has_changed) return false;
    declared_dead_at_.erase(record.id);
    if (record.state == core::NodeState::dead) declared_dead_at_[record.id] = now;
    return true;
  }

  /// Removes the nodes that are not live, for which `is_known(id)` is false, and that are not
  /// `in_use`: on which no member of a job runs.
  template <class IsKnown>
  void remove_dead(IsKnown is_known, const std::set<wire::NodeId>& in_use, core::Time now) {
    const std::unique_lock lock{mutex_};
    std::erase_if(declared_dead_at_,
                  [&](const auto& death) { return now > death.second + death_believed_after; });
    std::erase_if(nodes_, [&](const auto& node) {
      return !core::is_live(node.second.state) && !is_known(node.first) &&
             !in_use.contains(node.first);
    });
  }

  /// Whether the node is alive and not suspected; true for a node that is not known yet. In a
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
    use(known->second);
    return true;
  }

  [[nodiscard]] std::vector<core::NodeRecord> all() const {
    const std::shared_lock lock{mutex_};
    std::vector<core::NodeRecord> all;
    for (const auto& [id, record] : nodes_) all.push_back(record);
    std::ranges::sort(all, {}, &core::NodeRecord::id);
    return all;
  }
  [[nodiscard]] std::vector<core::NodeRecord> live() const {
    std::vector<core::NodeRecord> live = all();
    std::erase_if(live, [](const auto& record) { return !core::is_live(record.state); });
    return live;
  }

  /// Whether a live node has this address.
  [[nodiscard]] bool is_address_in_use(const std::string& address) const {
    const std::shared_lock lock{mutex_};
    return std::ranges::any_of(nodes_, [&](const auto& node) {
      return node.second.address == address && core::is_live(node.second.state);
    });
  }

  /// Whether the node is live. Returns nullopt if the node is not known, or was declared dead less
  /// than `death_believed_after` ago: when a partition ends, the nodes that were partitioned off
  /// declare all others dead, and the others refute this at once.
  [[nodiscard]] std::optional<bool> is_believed_live(wire::NodeId node, core::Time now) const {
    const std::shared_lock lock{mutex_};
    const auto known = nodes_.find(node);
    if (known == nodes_.end()) return std::nullopt;
    const auto death = declared_dead_at_.find(node);
    if (death != declared_dead_at_.end() && now < death->second + death_believed_after)
      return std::nullopt;
    return core::is_live(known->second.state);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<wire::NodeId, core::NodeRecord> nodes_;
  std::map<wire::NodeId, core::Time> declared_dead_at_;
};

}  // namespace starling::actor
