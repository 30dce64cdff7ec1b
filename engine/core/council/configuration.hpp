/// The configurations of a replicated job: its members, and the owners of each range. The council
/// decides on one configuration for each epoch. Plain values and pure functions; thread-safe to
/// read and call. docs/design/0006-range-ownership.md describes the protocol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::core {

/// At most this many members vote on the next configuration. A majority of seven survives the loss
/// of three.
inline constexpr std::size_t council_max = 7;

/// One incarnation of one member. A restart makes a new incarnation, and the old one counts as
/// dead.
struct Member {
  MemberId id = 0;
  Incarnation incarnation = 0;
  /// True if it computes updates.
  bool works = true;
  /// True if it may own ranges. If too few members may, the next configuration sets this for more
  /// members (see PendingChanges::owners).
  bool owns = true;
  /// The node that it runs on. 0: not known, as in a job of one process; the member then counts as
  /// alone on its node. Members of one node die together. At most one of them is to own ranges, and
  /// at most one is to be in the council, so that this costs at most one replica of a range and one
  /// vote.
  NodeId node = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.id, m.incarnation, m.works, m.owns, m.node);
  }
  auto operator<=>(const Member&) const = default;
};

/// Returns the member's name for messages to users: "worker 3", "server (member 5)" if it does not
/// work but may own ranges, or "member 7" if it does neither.
[[nodiscard]] std::string name_of(const Member& member);

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
  /// The epoch since which it has owned the range without a break. If it owned the range before a
  /// break too, the state that it held then is out of date.
  Epoch since = 0;
  /// True if the range moves away from it: it stays an owner until all owners that are not retiring
  /// are full (see PendingChanges::full).
  bool retiring = false;

  static constexpr auto fields(auto& m) { return std::tie(m.id, m.since, m.retiring); }
  bool operator==(const RangeOwner&) const = default;
};

/// The owners of one range.
struct Ownership {
  /// The epoch since which the range has had the same owners in the same order, and so the same
  /// primary. In bulk-synchronous jobs, a change of the workers begins a new owner epoch, too.
  Epoch owner_epoch = 0;
  /// The primary comes first. Empty if the range is lost; the job fails then.
  std::vector<RangeOwner> owners;

  static constexpr auto fields(auto& m) { return std::tie(m.owner_epoch, m.owners); }
  bool operator==(const Ownership&) const = default;

  [[nodiscard]] const RangeOwner* find(MemberId id) const;
};

/// The members of a job, what each of them does, and the owners of each range in one epoch. A
/// configuration without a council is the only one of its job: all members share one process (see
/// one_process_configuration()).
struct Configuration {
  Epoch epoch = 0;
  /// Ascending by id, each id at most once.
  std::vector<Member> members;
  /// The members that decide on the next configuration, ascending.
  std::vector<MemberId> council;
  /// Indexed by RangeId.
  std::vector<Ownership> ranges;
  /// The last incarnation of each former member whose id no present member has, ascending by id. No
  /// former incarnation becomes a member again, because links and ledgers would take its old
  /// messages and pushes for new ones.
  std::vector<MemberIncarnation> departed = {};
  /// The member that keeps the workers' steps or, in a map-reduce job, gives out the tasks; absent
  /// in jobs without a coordinator. It stays coordinator as long as it is a member. No incarnation
  /// becomes coordinator twice, so a receiver can tell the messages of two coordinators apart by
  /// their senders.
  std::optional<MemberId> coordinator = std::nullopt;
  /// The epoch since which all configurations have had the same members in the same incarnations.
  Epoch members_since = 1;

  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.members, m.council, m.ranges, m.departed, m.coordinator,
                    m.members_since);
  }
  bool operator==(const Configuration&) const = default;

  /// Returns nullptr if `id` is not a member.
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] bool contains(MemberId id, Incarnation incarnation) const;
  /// True if this incarnation, or a later one of the same member, is or was a member.
  [[nodiscard]] bool is_or_was_member(MemberId id, Incarnation incarnation) const;
  [[nodiscard]] bool in_council(MemberId id) const;
  /// True if all members share one process. The job then has only this configuration, and its
  /// members send each other messages without links.
  [[nodiscard]] bool is_of_one_process() const { return council.empty(); }
  /// Returns the members that `other` does not name, or names in another incarnation.
  [[nodiscard]] std::vector<Member> members_not_in(const Configuration& other) const;
  /// True if both configurations have the same members in the same incarnations.
  [[nodiscard]] bool has_same_members_as(const Configuration& other) const {
    return members.size() == other.members.size() && members_not_in(other).empty();
  }
  /// True if the coordinator of this configuration is the same incarnation as that of `former`, or
  /// if neither has a coordinator.
  [[nodiscard]] bool has_same_coordinator_as(const Configuration& former) const;
  /// True if some range has no owner.
  [[nodiscard]] bool has_lost_range() const;
  /// Returns the number of owners of the range with the fewest; 0 if there are no ranges.
  [[nodiscard]] std::size_t fewest_replicas() const;
};
using ConfigurationPtr = std::shared_ptr<const Configuration>;

/// True if `voters` contains a majority of the council, or exactly half of it with the council's
/// member of the lowest id. Any two such sets have a member in common. Requires: `council` is
/// ascending.
[[nodiscard]] bool is_quorum(std::span<const MemberId> council, std::span<const MemberId> voters);

/// Returns the configuration of epoch 1. Each range has `replication_factor` owners or, if fewer
/// members may own ranges, all of these members. The owners become primary in turn. The other
/// replicas are placed so that the numbers of ranges of two owners differ by at most one, if that
/// is possible without other primaries. If `has_coordinator`, one member becomes coordinator,
/// preferably one that neither works nor may own ranges. Requires: at least one member may own
/// ranges; members are sorted by id.
[[nodiscard]] Configuration first_configuration(std::vector<Member> members, std::size_t ranges,
                                                std::size_t replication_factor,
                                                bool has_coordinator = false);

/// Returns the only configuration of a job in one process. Members 0 to `workers` - 1 are its
/// workers. In central and hybrid mode, the next `owners` members are its servers. In central mode,
/// the last member is the coordinator. Range r belongs to owner number `owner_of[r]`: owner 0 is
/// the first server or, in peer mode, worker 0. All incarnations are 0. Requires: in peer mode,
/// `owners` is equal to `workers`.
[[nodiscard]] Configuration one_process_configuration(Mode mode, std::size_t workers,
                                                      std::size_t owners,
                                                      std::span<const OwnerId> owner_of);

/// The input for the next configuration: what the job asks for, and what has changed.
struct PendingChanges {
  /// The number of owners that each range should have.
  std::size_t replication_factor = 2;
  /// The number of members that should be owners, each on a different node. If fewer members than
  /// this, or than `replication_factor`, may own ranges, the next configuration sets Member::owns
  /// of further members, on nodes without an owner.
  std::size_t owners = 0;
  /// True in bulk-synchronous jobs. A round is complete when all workers have pushed, so each
  /// change of workers begins a new owner epoch of every range (Ownership::owner_epoch).
  bool bsp = false;
  std::vector<Member> joins = {};
  /// Members that want to leave. A member stays while it owns a range, and while it is the only
  /// member. If configurations place no ranges, it stays until another member that stays holds all
  /// ranges that it holds.
  std::vector<MemberId> leaves = {};
  /// Members to remove. The proposer suspects their present incarnation, or has chosen them because
  /// of suspicions that other members report (Council::choose_conflicting()).
  std::vector<MemberId> dead = {};
  /// full[r] are the full owners of range r, ascending by id. An owner is full if it is known to
  /// hold every acknowledged update of the range.
  std::vector<std::vector<MemberId>> full = {};
  /// By member: the ranges in its last RangeReport of this epoch (council.hpp), ascending.
  std::map<MemberId, std::vector<RangeId>> held = {};
  /// The number of the model's ranges if configurations do not place them on owners: every worker
  /// then holds all ranges, except one that has joined and has not received them yet. Else 0.
  std::size_t unplaced_ranges = 0;
  /// True if two nodes may be the only ones that hold a part of the state, such as a part of the
  /// optimizer's state. All members that leave with one configuration are then on one node, and no
  /// member leaves with a configuration that removes dead members. A request to leave counts only
  /// in the epoch in which it was made.
  bool node_by_node = false;
  /// True: if no full owner of a range is alive, the next configuration gives the range no owners.
  /// False: there is no next configuration then. In both cases Successor::lost names the range.
  bool gives_up_lost_ranges = false;
};

/// The result of next_configuration().
struct Successor {
  /// Absent if nothing changes, if no member is left, or if ranges are lost and not given up.
  std::shared_ptr<Configuration> next;
  /// The ranges of which no full owner is alive or, if configurations place no ranges, that no
  /// living member holds.
  std::vector<RangeId> lost;
};

/// Returns the configuration after `now`. Owners keep their ranges, unless the numbers of ranges of
/// two members would then differ by more than one. A range that moves has both its old and its new
/// owners until the new ones are full, and its primary is always full. If the coordinator leaves or
/// dies, another member becomes coordinator. After enough calls, each with the result of the one
/// before and with all owners full, nothing changes any more; the numbers of ranges of two members
/// that may own ranges then differ by at most one.
[[nodiscard]] Successor next_configuration(const Configuration& now, const PendingChanges& pending);

}  // namespace starling::core
