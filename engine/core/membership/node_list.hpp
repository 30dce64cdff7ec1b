/// The other members that one member knows: found by id, probed in turn, drawn at random, summed up
/// in digests. No operation looks at all of them.
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

/// An entry of one member's list, for another member.
struct MemberEntry {
  NodeRecord record;
  /// Since when it is suspected, dead or gone; without meaning in other states.
  Time since{};
  /// When a suspicion is looked at again.
  Time deadline{};
  /// The members that suspect it, each once; only as many as affect the deadline.
  std::vector<NodeId> accusers = {};
  /// When a message last came from the member itself; kept only for members with a name.
  Time heard{};
  /// The member that reported the state.
  NodeId by = 0;
  /// Its position among the live or the dead.
  std::size_t place = 0;
};

/// Checksums of the known live members, in buckets by a hash of their ids. Equal sums mean equal
/// members and incarnations, but for a chance of 2^-64 each.
class MemberDigest {
 public:
  static constexpr std::size_t buckets_max = 1024;

  static std::size_t bucket(NodeId id) noexcept { return mix(id) % buckets_max; }
  /// Adds a live member, or takes it out.
  void toggle(const NodeRecord& record) noexcept {
    if (is_live(record.state)) sums_[bucket(record.id)] ^= mix(mix(record.id) ^ record.incarnation);
  }
  /// Returns the sums in `count` buckets. Requires: `count` is a power of two, up to buckets_max.
  [[nodiscard]] std::vector<std::uint64_t> folded(std::size_t count) const {
    std::vector<std::uint64_t> sums(count);
    for (std::size_t i = 0; i < buckets_max; ++i) sums[i % count] ^= sums_[i];
    return sums;
  }

 private:
  std::array<std::uint64_t, buckets_max> sums_{};
};

/// One call at a time; not thread-safe. Pointers to entries hold until the entry is erased.
class NodeList {
 public:
  /// `salt`: secret, so that no sender can choose ids whose hashes collide.
  explicit NodeList(std::uint64_t salt) : entries_(0, Hash{salt}) {}

  [[nodiscard]] MemberEntry* find(NodeId id);
  [[nodiscard]] const MemberEntry* find(NodeId id) const;
  /// Adds a member. Requires: its id is not known yet.
  MemberEntry& insert(NodeRecord record);
  /// Replaces the member's record. Requires: the same id.
  void update(MemberEntry& entry, NodeRecord record);
  void erase(NodeId id);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// The live members, in no order.
  [[nodiscard]] const std::vector<NodeId>& live() const noexcept { return live_; }
  /// The dead members, in no order, without those that have left.
  [[nodiscard]] const std::vector<NodeId>& dead() const noexcept { return dead_; }

  /// Returns the next live member in turn, nullptr where there is none: each once in a round, in a
  /// new random order each round, so that at most 2 n - 2 others come between.
  MemberEntry* next(Random& random);
  /// Returns a live member of this name other than `but`; nullptr where there is none, or `name` is
  /// empty.
  [[nodiscard]] const MemberEntry* find_named(const std::string& name, NodeId but) const;
  /// Returns up to `count` different live members that `fit` accepts. It may miss some where few of
  /// many fit.
  [[nodiscard]] std::vector<const MemberEntry*> draw_live(
      Random& random, std::size_t count,
      const std::function<bool(const MemberEntry&)>& fit = {}) const;

  [[nodiscard]] const MemberDigest& digest() const noexcept { return digest_; }
  /// Calls `each(record)` for all members whose bucket, of `count`, is `bucket`.
  template <class Each>
  void each_in(std::size_t bucket, std::size_t count, Each each) const {
    for (std::size_t i = bucket; i < ids_.size(); i += count)
      for (const NodeId id : ids_[i]) each(find(id)->record);
  }

 private:
  struct Hash {
    std::uint64_t salt;
    std::size_t operator()(NodeId id) const noexcept { return mix(id ^ salt); }
  };

  void enlist(MemberEntry& entry);
  void strike(const MemberEntry& entry);
  void add_name(const NodeRecord& record);
  void remove_name(const NodeRecord& record);

  std::unordered_map<NodeId, MemberEntry, Hash> entries_;
  /// The names of live members that have one.
  std::unordered_multimap<std::string, NodeId> names_;
  /// The first `probed_` have had their turn in this round.
  std::vector<NodeId> live_;
  std::size_t probed_ = 0;
  std::vector<NodeId> dead_;
  MemberDigest digest_;
  /// The ids of all members, by their buckets.
  std::array<std::vector<NodeId>, MemberDigest::buckets_max> ids_;
};

}  // namespace starling::core
