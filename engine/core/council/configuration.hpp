/// The members of a job and the owners of each range. The council decides on one configuration for
/// each epoch. Pure values and functions; any thread. docs/design/0006-range-ownership.md describes
/// the protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "starling/engine/core/ids.hpp"

namespace starling::core {

/// At most this many members vote on the next configuration. A majority of seven survives the loss
/// of three.
inline constexpr std::size_t council_max = 7;

/// One incarnation of one member. A restart makes a new incarnation; the old one is dead.
struct Member {
  MemberId id = 0;
  Incarnation incarnation = 0;
  /// True if it computes updates.
  bool works = true;
  /// True if it may own ranges. If too few members may, the next configuration lets more of them
  /// own ranges.
  bool owns = true;
  /// The node that it runs on: members of one node die together. At most one of a node's members
  /// owns ranges, and at most one is in the council, so that no death takes two copies or two
  /// votes. 0: it shares its node with no other member.
  NodeId node = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.incarnation, m.works, m.owns, m.node);
  }
  auto operator<=>(const Member&) const = default;
};

/// Names one incarnation of one member.
struct MemberIncarnation {
  MemberId id = 0;
  Incarnation incarnation = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.id, m.incarnation); }
  auto operator<=>(const MemberIncarnation&) const = default;
};

[[nodiscard]] inline bool is_among(std::span<const MemberId> ids, MemberId id) {
  return std::ranges::find(ids, id) != ids.end();
}

/// One owner of a range.
struct RangeOwner {
  MemberId id = 0;
  /// The configuration epoch since which it has owned the range without a break. The state that it
  /// held before is out of date.
  Epoch since = 0;
  /// True if it gives the range up once all the owners that stay hold it.
  bool retiring = false;

  static constexpr auto fields(auto& m) { return std::tie(m.id, m.since, m.retiring); }
  bool operator==(const RangeOwner&) const = default;
};

/// The owners of one range.
struct Ownership {
  /// The configuration epoch since which the owners have been the same; in bulk-synchronous jobs,
  /// since which the workers have been the same too.
  Epoch owner_epoch = 0;
  /// The primary comes first. Empty if the range is lost; the job fails then.
  std::vector<RangeOwner> owners;

  static constexpr auto fields(auto& m) { return std::tie(m.owner_epoch, m.owners); }
  bool operator==(const Ownership&) const = default;

  [[nodiscard]] const RangeOwner* find(MemberId id) const;
};

struct Configuration {
  Epoch epoch = 0;
  /// Ascending by id, each id at most once.
  std::vector<Member> members;
  /// The members that decide on the next configuration, ascending.
  std::vector<MemberId> council;
  /// Indexed by RangeId.
  std::vector<Ownership> ranges;
  /// The last incarnation of each former member, ascending by id. It never becomes a member again:
  /// links and ledgers would take its old messages and pushes for new ones.
  std::vector<MemberIncarnation> departed = {};
  /// The member that keeps the workers' steps; absent in jobs without a coordinator. It stays
  /// coordinator as long as it is a member. No incarnation becomes coordinator twice, so the
  /// sender's id of a message says which coordinator sent it.
  std::optional<MemberId> coordinator = std::nullopt;

  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.members, m.council, m.ranges, m.departed, m.coordinator);
  }
  bool operator==(const Configuration&) const = default;

  /// Returns nullptr if `id` is not a member.
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] bool contains(MemberId id, Incarnation incarnation) const;
  /// True if this incarnation, or a later one of the same member, is or was a member.
  [[nodiscard]] bool is_or_was_member(MemberId id, Incarnation incarnation) const;
  [[nodiscard]] bool in_council(MemberId id) const;
  /// Returns the members that `other` does not name, or names in another incarnation.
  [[nodiscard]] std::vector<Member> members_not_in(const Configuration& other) const;
  /// True if this configuration and `former` have the same incarnation as coordinator, or both have
  /// none.
  [[nodiscard]] bool has_same_coordinator_as(const Configuration& former) const;
  /// True if some range has no owner.
  [[nodiscard]] bool has_lost_range() const;
  /// Returns the number of owners of the range with the fewest; 0 if there are no ranges.
  [[nodiscard]] std::size_t fewest_copies() const;
};
using ConfigurationPtr = std::shared_ptr<const Configuration>;

/// True if `voters` contains a majority of the council, or an exact half that includes the
/// council's lowest member. Any two such sets have a member in common. Both lists are ascending.
[[nodiscard]] bool is_quorum(std::span<const MemberId> council, std::span<const MemberId> voters);

/// Returns the configuration of epoch 1. Each range has `copies` owners, or all members that own if
/// these are fewer, and loads differ by at most one range. If `has_coordinator`, one member keeps
/// the steps, preferably one that neither works nor owns. Requires: at least one member owns;
/// members are sorted by id.
[[nodiscard]] Configuration first_configuration(std::vector<Member> members, std::size_t ranges,
                                                std::size_t copies, bool has_coordinator = false);

/// The changes that the next configuration is to make.
struct PendingChanges {
  /// The number of owners that each range should have.
  std::size_t copies = 2;
  /// The number of members that should be owners, each on a node of its own. While fewer than this,
  /// or fewer than `copies`, may own ranges, members on nodes without an owner become owners too.
  std::size_t owners = 0;
  /// True in bulk-synchronous jobs: a round is complete when all workers have pushed, so every
  /// change of workers renews Ownership::owner_epoch of every range.
  bool bsp = false;
  std::vector<Member> joins = {};
  /// Members that want to leave once they own no range.
  std::vector<MemberId> leaves = {};
  /// Members whose present incarnation is suspected to be dead.
  std::vector<MemberId> dead = {};
  /// Indexed by RangeId: the full owners, which are known to hold every acknowledged update;
  /// ascending.
  std::vector<std::vector<MemberId>> full = {};
  /// Says what to do about a range that no live owner is known to hold. True: the next
  /// configuration gives the range no owners. False: there is no next configuration, and
  /// Successor::lost names the range.
  bool give_up = false;
};

/// The result of next_configuration().
struct Successor {
  /// Absent if nothing changes, if no member is left, or if ranges are lost and not given up.
  std::shared_ptr<Configuration> next;
  /// Ranges that no live owner is known to hold.
  std::vector<RangeId> lost;
};

/// Returns the configuration after `now`. Few ranges move, and in the end the loads of the members
/// that may own differ by at most one range. A range that moves has both its old and its new owners
/// until the new ones hold it, and a primary always holds its range. If the coordinator leaves or
/// dies, another member becomes coordinator. Repeated calls with all owners full reach a
/// configuration that needs no change.
[[nodiscard]] Successor next_configuration(const Configuration& now, const PendingChanges& pending);

}  // namespace starling::core
