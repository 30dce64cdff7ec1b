/// The list of the other nodes that one node knows. It finds nodes by id or name, chooses the next
/// one to probe, draws random ones, and keeps checksums of their records. Only draw_live() may
/// visit the whole list, if it draws at least a quarter of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/membership/membership_message.hpp"

namespace starling::core {

/// The entry of another node in this node's list.
struct NodeEntry {
  NodeRecord record;
  /// When this node learned that the other node is suspected, has died or has left; without meaning
  /// while the other node is alive.
  Time state_changed_at{};
  /// If the other node is suspected: when this node declares it dead, unless more reports or a
  /// refutation come.
  Time deadline{};
  /// The nodes that suspect the other node, each once. Further nodes are left out once their number
  /// does not affect the deadline any more.
  std::vector<NodeId> suspected_by = {};
  /// When this node last received a message from the other node; kept only for nodes with a name.
  Time received_at{};
  /// Counts this node's probes of the other node that only helpers have answered, since a message
  /// of the other node last came.
  unsigned relayed_probes = 0;
  /// The node that reported its state.
  NodeId reported_by = 0;
  /// Its position in NodeList::live() or dead().
  std::size_t list_position = 0;
};

/// Checksums of the known live nodes, one for each bucket. A hash of a node's id chooses its
/// bucket. If two sums are equal, their buckets have the same nodes in the same incarnations,
/// except with probability 2^-64.
class NodeDigest {
 public:
  static constexpr std::size_t buckets_max = 1024;

  static std::size_t bucket(NodeId id) noexcept { return mix(id) % buckets_max; }
  /// Adds the node to its bucket's sum if the sum does not contain it, else removes it. Ignores
  /// nodes that are not live.
  void toggle(const NodeRecord& record) noexcept {
    if (is_live(record.state)) sums_[bucket(record.id)] ^= mix(mix(record.id) ^ record.incarnation);
  }
  /// Returns the sums of `count` larger buckets: bucket i of them joins all buckets whose numbers
  /// are i modulo `count`. Requires: `count` is a power of two, at most buckets_max.
  [[nodiscard]] std::vector<std::uint64_t> folded(std::size_t count) const {
    std::vector<std::uint64_t> sums(count);
    for (std::size_t i = 0; i < buckets_max; ++i) sums[i % count] ^= sums_[i];
    return sums;
  }

 private:
  std::array<std::uint64_t, buckets_max> sums_{};
};

/// One call at a time; not thread-safe. Pointers to an entry stay valid until it is erased.
class NodeList {
 public:
  /// `salt` is a secret number in the hash of ids: a sender that does not know it cannot choose ids
  /// whose hashes collide.
  explicit NodeList(std::uint64_t salt) : entries_(0, Hash{salt}) {}

  [[nodiscard]] NodeEntry* find(NodeId id);
  [[nodiscard]] const NodeEntry* find(NodeId id) const;
  /// Adds a node. Requires: its id is not known yet.
  NodeEntry& insert(NodeRecord record);
  /// Replaces the node's record. Requires: `record` has the same id.
  void update(NodeEntry& entry, NodeRecord record);
  void erase(NodeId id);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// The live nodes, in no order.
  [[nodiscard]] const std::vector<NodeId>& live() const noexcept { return live_; }
  /// The dead nodes, in no order, without those that have left.
  [[nodiscard]] const std::vector<NodeId>& dead() const noexcept { return dead_; }

  /// Returns the next live node to probe, or nullptr if there is none. In each round of n calls it
  /// returns each of the n live nodes once, in a new random order. So it returns at most 2 n - 2
  /// other nodes before it returns the same node again.
  NodeEntry* next(Random& random);
  /// Returns a live node of this name other than `except`; nullptr if there is none, or if `name`
  /// is empty.
  [[nodiscard]] const NodeEntry* find_named(const std::string& name, NodeId except) const;
  /// Returns up to `count` different random live nodes that `is_eligible` accepts. In a large list
  /// it stops after 4 * `count` tries, and may then return fewer nodes than it could.
  [[nodiscard]] std::vector<const NodeEntry*> draw_live(
      Random& random, std::size_t count,
      const std::function<bool(const NodeEntry&)>& is_eligible = {}) const;

  [[nodiscard]] const NodeDigest& digest() const noexcept { return digest_; }
  /// Calls `each(record)` for all nodes in bucket `bucket` of the `count` larger buckets of
  /// NodeDigest::folded().
  template <class Each>
  void for_each_in_bucket(std::size_t bucket, std::size_t count, Each each) const {
    for (std::size_t i = bucket; i < ids_.size(); i += count)
      for (const NodeId id : ids_[i]) each(find(id)->record);
  }

 private:
  struct Hash {
    std::uint64_t salt;
    std::size_t operator()(NodeId id) const noexcept { return mix(id ^ salt); }
  };

  void add_to_lists(NodeEntry& entry);
  void remove_from_lists(const NodeEntry& entry);
  void add_name(const NodeRecord& record);
  void remove_name(const NodeRecord& record);

  std::unordered_map<NodeId, NodeEntry, Hash> entries_;
  /// The live nodes that have a name, by name.
  std::unordered_multimap<std::string, NodeId> names_;
  /// The live nodes. In this round, next() has returned the first `probed_count_` of them.
  std::vector<NodeId> live_;
  std::size_t probed_count_ = 0;
  std::vector<NodeId> dead_;
  NodeDigest digest_;
  /// The ids of all nodes, by their buckets.
  std::array<std::vector<NodeId>, NodeDigest::buckets_max> ids_;
};

}  // namespace starling::core
