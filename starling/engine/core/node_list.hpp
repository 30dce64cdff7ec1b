/// The members that one member knows, itself not among them: found by id, probed in turn, drawn at
/// random, summed up in digests. No operation looks at all of them.
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
#include "starling/engine/core/membership_message.hpp"

namespace starling::core {

/// What stands in a member's list of another one.
struct MemberEntry {
  NodeRecord record;
  /// Suspected or dead since; of no meaning else.
  Time since{};
  /// When a suspicion is looked at again.
  Time deadline{};
  /// Who suspects it, each once; only so many as make a difference.
  std::vector<NodeId> accusers = {};
  /// When it said something itself, last.
  Time heard{};
  /// Whose word the state is.
  NodeId by = 0;
  /// Its place among the live or the dead.
  std::size_t place = 0;
};

/// Sums of what is known of the live members, by a hash of their ids. Equal sums mean equal members
/// and incarnations, but for a chance of 2^-64 each.
class MemberDigest {
 public:
  static constexpr std::size_t buckets_max = 1024;

  static std::size_t bucket(NodeId id) noexcept { return mix(id) % buckets_max; }
  /// Adds a live member, or takes it out.
  void toggle(const NodeRecord& record) noexcept {
    if (is_live(record.state)) sums_[bucket(record.id)] ^= mix(mix(record.id) ^ record.incarnation);
  }
  /// The same in `count` buckets. Requires: a power of two, up to buckets_max.
  [[nodiscard]] std::vector<std::uint64_t> folded(std::size_t count) const {
    std::vector<std::uint64_t> sums(count);
    for (std::size_t i = 0; i < buckets_max; ++i) sums[i % count] ^= sums_[i];
    return sums;
  }

 private:
  std::array<std::uint64_t, buckets_max> sums_{};
};

/// One at a time; not thread-safe. Pointers to entries hold until the entry is erased.
class NodeList {
 public:
  /// `salt`: secret, so that nobody can choose ids that fall together.
  explicit NodeList(std::uint64_t salt) : entries_(0, Hash{salt}) {}

  [[nodiscard]] MemberEntry* find(NodeId id);
  [[nodiscard]] const MemberEntry* find(NodeId id) const;
  /// Requires: not known yet.
  MemberEntry& insert(NodeRecord record);
  /// Replaces what is known of the member. Requires: the same id.
  void update(MemberEntry& entry, NodeRecord record);
  void erase(NodeId id);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// In no order.
  [[nodiscard]] const std::vector<NodeId>& live() const noexcept { return live_; }
  /// Those that have not left.
  [[nodiscard]] const std::vector<NodeId>& dead() const noexcept { return dead_; }

  /// The next live member in turn, nullptr where there is none: each once in a round, in a new
  /// random order each round, so that at most 2 n - 2 others come between.
  MemberEntry* next(Random& random);
  /// A live member of this name other than `but`; nullptr where there is none, or no name.
  [[nodiscard]] const MemberEntry* find_named(const std::string& name, NodeId but) const;
  /// Up to `count` different live ones that `fit` accepts. Where few of many fit it may miss some.
  [[nodiscard]] std::vector<const MemberEntry*> draw_live(
      Random& random, std::size_t count,
      const std::function<bool(const MemberEntry&)>& fit = {}) const;

  [[nodiscard]] const MemberDigest& digest() const noexcept { return digest_; }
  /// Calls `each(record)` for all whose bucket, of `count`, is `bucket`.
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
  /// All of them, by their buckets.
  std::array<std::vector<NodeId>, MemberDigest::buckets_max> ids_;
};

}  // namespace starling::core
