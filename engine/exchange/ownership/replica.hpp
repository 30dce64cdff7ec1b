/// The ranges that one member owns together with other members: a Shard, and the protocol that
/// keeps all replicas of a range equal (docs/design/0006-range-ownership.md).
///
/// The owner epoch of a range is the epoch since which its owners are the same
/// (Ownership::owner_epoch). Within an owner epoch, the range's primary numbers the pushes that it
/// accepts. It first sends the other owners the state of the range, which has number 0 (Install),
/// and then each push (Forward). They report the number up to which they hold the range (Held). The
/// primary acknowledges a push to its worker once every owner of the range holds it. A *full* owner
/// holds every acknowledged update of the range.
#pragma once

#include <memory>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/exchange/ownership/shard.hpp"

namespace starling::core {

/// One call at a time; not thread-safe. Requires: messages between owners come once and in order,
/// as channels deliver them. If on() returns false, it has refused a message of another owner
/// epoch, and the caller must send the sender the configuration.
class Replica {
 public:
  explicit Replica(ExchangeOptions options);

  /// Adopts configuration `next`. `former` is the epoch of the configuration that this member knew
  /// before, perhaps several epochs earlier, or 0 if it knew none. Requires: `next` names this
  /// member.
  void on_configuration(const OwnershipContext& context, const Configuration& next, Epoch former);

  /// Requires: the push comes from the worker that it names, and this incarnation is a member.
  [[nodiscard]] bool on(const OwnershipContext& context, const std::shared_ptr<const Push>& push);
  [[nodiscard]] bool on(const OwnershipContext& context, const Pull& pull);
  /// Ignores the message unless the job is bulk-synchronous. Requires: the message comes from the
  /// worker itself.
  void on(const OwnershipContext& context, const Ended& ended);
  /// Answers with the states of the ranges that this member holds.
  void on(const OwnershipContext& context, const Snapshot& request) { shard_.on(context, request); }
  [[nodiscard]] bool on(const OwnershipContext& context, MemberId from, const Install& install);
  [[nodiscard]] bool on(const OwnershipContext& context, MemberId from, const Forward& forward);
  [[nodiscard]] bool on(const OwnershipContext& context, MemberId from, const Held& held);

  /// Returns the ranges of which this member is a full owner, ascending.
  [[nodiscard]] std::vector<RangeId> full_ranges() const;
  [[nodiscard]] bool is_full_owner(RangeId range) const { return owned_range(range).full; }
  [[nodiscard]] bool is_primary(RangeId range) const { return owned_range(range).primary; }
  [[nodiscard]] Epoch owner_epoch(RangeId range) const { return owned_range(range).owner_epoch; }
  /// True if this member holds the state with which the range's owner epoch begins.
  [[nodiscard]] bool is_installed(RangeId range) const { return owned_range(range).installed; }
  /// Returns the last number in the owner epoch: on the primary the last that it has sent, on
  /// another owner the last up to which it holds the range.
  [[nodiscard]] std::uint64_t number(RangeId range) const { return owned_range(range).number; }
  /// Returns how often full_ranges() has changed.
  [[nodiscard]] std::uint64_t full_ranges_version() const noexcept { return full_ranges_version_; }

  [[nodiscard]] Shard& shard() noexcept { return shard_; }
  [[nodiscard]] const Shard& shard() const noexcept { return shard_; }

 private:
  /// Another owner of a range, as the primary knows it.
  struct OtherOwner {
    MemberId id;
    /// True once it has reported that it holds the state with which the owner epoch begins.
    bool installed;
    /// The number in its last Held.
    std::uint64_t held;
  };
  /// An Ack that the primary sends once all owners hold everything up to `number`.
  struct PendingAck {
    std::uint64_t number;
    MemberId worker;
    Ack ack;
  };
  struct OwnedRange {
    /// 0 if this member does not own the range.
    Epoch owner_epoch = 0;
    /// True if this member is a full owner.
    bool full = false;
    bool primary = false;
    /// True once this member holds the state with which the owner epoch begins; on the primary at
    /// once.
    bool installed = false;
    MemberId primary_id = 0;
    /// The last number that was sent or is held.
    std::uint64_t number = 0;
    /// Primary only: the other owners.
    std::vector<OtherOwner> others;
    /// Primary only, in order of numbers.
    std::vector<PendingAck> pending_acks;
  };

  /// Returns the entry of the range. If this member has never owned a range, returns an entry that
  /// says that the range is not owned.
  [[nodiscard]] const OwnedRange& owned_range(RangeId range) const {
    static const OwnedRange not_owned;
    return range < ranges_.size() ? ranges_[range] : not_owned;
  }
  void release(RangeId range);
  void begin_owner_epoch(const OwnershipContext& context, RangeId range, const Configuration& next,
                         bool is_first_epoch);
  /// True if `primary` is the primary of the range in this owner epoch, and this member another
  /// owner.
  [[nodiscard]] bool is_backup_of(RangeId range, Epoch owner_epoch, MemberId primary) const;
  /// True if every owner in the owner epoch holds everything up to `number`.
  [[nodiscard]] static bool is_held_by_all(const OwnedRange& owned, std::uint64_t number);
  void acknowledge(const OwnershipContext& context, OwnedRange& owned);

  MemberId self_;
  bool bsp_;
  std::shared_ptr<const std::vector<RangeState>> initial_states_;
  Shard shard_;
  /// By range. Empty until this member owns a range: a process may have thousands of members that
  /// never do.
  std::vector<OwnedRange> ranges_;
  std::uint64_t full_ranges_version_ = 0;
  /// The number of workers in the current configuration, if this member is primary of a range.
  std::uint32_t workers_ = 0;
};

}  // namespace starling::core
