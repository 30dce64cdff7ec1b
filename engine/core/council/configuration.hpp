/// The members of a job and the owners of each range: one decided value an epoch. Pure values and
/// functions; any thread. docs/design/0006-range-ownership.md describes the protocol.
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

/// At most this many members vote on the next configuration: seven survive the loss of three.
inline constexpr std::size_t council_max = 7;

/// One incarnation of one member. A member that restarts is a new incarnation; the old one is dead.
struct Member {
  MemberId id = 0;
  Incarnation incarnation = 0;
  /// Computes updates.
  bool works = true;
  /// May own ranges. The next configuration sets this for more members where too few others may.
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

/// The name of one incarnation of one member.
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
  /// The epoch since which it has owned the range without a break: what it held before then does
  /// not count.
  Epoch since = 0;
  /// True where it is to give the range up once the owners that keep the range hold it.
  bool retiring = false;

  static constexpr auto fields(auto& m) { return std::tie(m.id, m.since, m.retiring); }
  bool operator==(const RangeOwner&) const = default;
};

struct Ownership {
  /// The epoch since which the owners are the same; in bulk-synchronous jobs, since which the
  /// workers are the same too.
  Epoch view = 0;
  /// The primary comes first. Empty: the range is lost, and with it the job.
  std::vector<RangeOwner> owners;

  static constexpr auto fields(auto& m) { return std::tie(m.view, m.owners); }
  bool operator==(const Ownership&) const = default;

  [[nodiscard]] const RangeOwner* find(MemberId id) const;
};

struct Configuration {
  Epoch epoch = 0;
  /// By id, each at most once.
  std::vector<Member> members;
  /// The members that decide on the next configuration, ascending.
  std::vector<MemberId> council;
  /// By range.
  std::vector<Ownership> ranges;
  /// The last incarnation of each former member, by id. That incarnation never becomes a member
  /// again: links and ledgers would take its old messages and pushes for new ones.
  std::vector<MemberIncarnation> departed = {};
  /// The member that keeps the steps; absent in jobs without a coordinator. It stays coordinator as
  /// long as it is a member. No incarnation is coordinator twice, so an id tells which coordinator
  /// sent a message.
  std::optional<MemberId> coordinator = std::nullopt;

  static constexpr auto fields(auto& m) {
    return std::tie(m.epoch, m.members, m.council, m.ranges, m.departed, m.coordinator);
  }
  bool operator==(const Configuration&) const = default;

  /// Returns nullptr if `id` is not a member.
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] bool contains(MemberId id, Incarnation incarnation) const;
  /// True if this incarnation, or a later one of the same member, is or was a member.
  [[nodiscard]] bool has_had(MemberId id, Incarnation incarnation) const;
  [[nodiscard]] bool in_council(MemberId id) const;
  /// Returns the members that `other` does not name, or names in another incarnation.
  [[nodiscard]] std::vector<Member> members_not_in(const Configuration& other) const;
  /// True if the same incarnation is the coordinator here and in `former`, or neither has one.
  [[nodiscard]] bool keeps_coordinator_of(const Configuration& former) const;
  /// True if a range has no owner left.
  [[nodiscard]] bool lost() const;
  /// Returns the number of owners of the range that has the fewest; 0 where there are no ranges.
  [[nodiscard]] std::size_t copies_min() const;
};
using ConfigurationPtr = std::shared_ptr<const Configuration>;

/// True if `voters` are a majority of the council, or an exact half that includes its lowest
/// member: any two such sets meet. Both lists are ascending.
[[nodiscard]] bool is_quorum(std::span<const MemberId> council, std::span<const MemberId> voters);

/// Returns the configuration of epoch 1: each range has `copies` owners, or all there are, and
/// loads differ by at most one range; if `coordinated`, one member keeps the steps, preferably one
/// that neither works nor owns. Requires: a member that owns; members sorted by id.
[[nodiscard]] Configuration first_configuration(std::vector<Member> members, std::size_t ranges,
                                                std::size_t copies, bool coordinated = false);

/// The changes that the next configuration is to make.
struct PendingChanges {
  /// Owners wanted for each range.
  std::size_t copies = 2;
  /// Members wanted that may own ranges, each on a node of its own. Where fewer than this, or than
  /// `copies`, may own, members on nodes without an owner are let own too, as long as there are
  /// any.
  std::size_t owners = 0;
  /// Bulk-synchronous jobs: the workers decide when a round is complete, so every change of workers
  /// starts a new view of every range.
  bool bsp = false;
  std::vector<Member> joins = {};
  /// Members that want to leave once they own no range.
  std::vector<MemberId> leaves = {};
  /// Members suspected to be dead, in the incarnation that the configuration names.
  std::vector<MemberId> dead = {};
  /// By range, the owners that are known to hold all that was acknowledged, ascending.
  std::vector<std::vector<MemberId>> full = {};
  /// True: gives up a range that no live owner is known to hold. False: Successor::lost names such
  /// a range, and nothing changes.
  bool give_up = false;
};

struct Successor {
  /// Absent where there is nothing to change, where no member is left, and where ranges are lost
  /// and not given up.
  std::shared_ptr<Configuration> next;
  /// Ranges that no live owner is known to hold.
  std::vector<RangeId> lost;
};

/// Returns the configuration after `now`. Loads differ by at most one range among the members that
/// may own, few ranges move, a range that moves has its old and its new owners until the new ones
/// hold it, and a primary always holds its range. Where the coordinator leaves or dies, another
/// member becomes coordinator. Repeated with all owners full, the changes end.
[[nodiscard]] Successor next_configuration(const Configuration& now, const PendingChanges& pending);

}  // namespace starling::core
