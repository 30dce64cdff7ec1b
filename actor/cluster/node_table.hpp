/// The other nodes that a node knows of, as membership reports them. Internal to the cluster's
/// node.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// One thread writes, any thread reads.
class NodeTable {
 public:
  /// A death is believed when it has not been taken back for this long.
  static constexpr std::chrono::milliseconds believe_after{400};

  /// Stores a record. True where the node is new, or is live now and was not, or the other way
  /// round.
  bool note(const core::NodeRecord& record, core::Time now) {
    const std::unique_lock lock{mutex_};
    auto& known = nodes_[record.id];
    const bool is_news = core::is_live(known.state) != core::is_live(record.state) || known.id == 0;
    known = record;
    if (!is_news) return false;
    died_.erase(record.id);
    if (record.state == core::NodeState::dead) died_[record.id] = now;
    return true;
  }

  /// Forgets the nodes that are not live and of which `is_known(id)` does not hold.
  template <class IsKnown>
  void forget(IsKnown is_known, core::Time now) {
    const std::unique_lock lock{mutex_};
    std::erase_if(died_, [&](const auto& death) { return now > death.second + believe_after; });
    std::erase_if(nodes_, [&](const auto& node) {
      return !core::is_live(node.second.state) && !is_known(node.first);
    });
  }

  /// Calls `use(record)` where that node is known, and returns whether it is. Requires: `use` does
  /// not call this table.
  template <class Use>
  bool with(wire::NodeId node, Use use) const {
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
    std::vector<core::NodeRecord> some = all();
    std::erase_if(some, [](const auto& record) { return !core::is_live(record.state); });
    return some;
  }

  /// Whether a live node has this address.
  [[nodiscard]] bool is_in_use(const std::string& address) const {
    const std::shared_lock lock{mutex_};
    return std::ranges::any_of(nodes_, [&](const auto& node) {
      return node.second.address == address && core::is_live(node.second.state);
    });
  }

  /// Whether the node is live. Nothing for a node that is not known yet, or that was declared dead
  /// less than `believe_after` ago: after a partition the nodes that were partitioned off declare
  /// all others dead, which refute it at once.
  [[nodiscard]] std::optional<bool> lives(wire::NodeId node, core::Time now) const {
    const std::shared_lock lock{mutex_};
    const auto known = nodes_.find(node);
    if (known == nodes_.end()) return std::nullopt;
    const auto died = died_.find(node);
    if (died != died_.end() && now < died->second + believe_after) return std::nullopt;
    return core::is_live(known->second.state);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<wire::NodeId, core::NodeRecord> nodes_;
  /// When each dead node was declared dead.
  std::map<wire::NodeId, core::Time> died_;
};

}  // namespace starling::actor
