/// Who is a member of a job, and who owns which range: one decided value an epoch. Pure values and
/// functions; any thread. The protocol around them: docs/design/0006-range-ownership.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  /// May own ranges. A member that may not is made to where too few others do.
  bool owns = true;
  /// Where it runs: members of one node die together. At most one of a node's members owns ranges,
  /// and at most one is in the council, so that no death takes two copies or two votes. 0: nowhere
  /// else any member runs.
  NodeId node = 0;
  auto operator<=>(const Member&) const = default;
};

/// The name of one incarnation of one member.
struct MemberIncarnation {
  MemberId id = 0;
  Incarnation incarnation = 0;
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
  /// It is to give the range up once those who are to keep it hold it.
  bool retiring = false;
  bool operator==(const RangeOwner&) const = default;
};

struct Ownership {
  /// The epoch since which these are the owners.
  Epoch view = 0;
  /// The primary first. Empty: the range is lost, and with it the job.
  std::vector<RangeOwner> owners;
  bool operator==(const Ownership&) const = default;

  [[nodiscard]] const RangeOwner* find(MemberId id) const;
};

struct Configuration {
  Epoch epoch = 0;
  /// By id, each at most once.
  std::vector<Member> members;
  /// Who decides on the next configuration: some of the members, ascending.
  std::vector<MemberId> council;
  /// By range.
  std::vector<Ownership> ranges;
  /// By id, of each that is no member the last incarnation that was. None comes back: links and
  /// ledgers would take what is left of its former time for new.
  std::vector<MemberIncarnation> departed = {};
  /// The member that keeps the steps, in jobs where one does. It does so as long as it is a member;
  /// then another does: no incarnation keeps them twice, so what it said names who said it.
  std::optional<MemberId> coordinator = std::nullopt;
  bool operator==(const Configuration&) const = default;

  /// nullptr where there is none.
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] bool contains(MemberId id, Incarnation incarnation) const;
  /// True where this incarnation, or a later one of the same, is or was a member.
  [[nodiscard]] bool has_had(MemberId id, Incarnation incarnation) const;
  [[nodiscard]] bool in_council(MemberId id) const;
  /// Its members that `other` does not name, or names in another incarnation.
  [[nodiscard]] std::vector<Member> lacking_in(const Configuration& other) const;
  /// True where the same incarnation kept the steps already in `former`.
  [[nodiscard]] bool keeps_coordinator_of(const Configuration& former) const;
  /// True where a range has no owner left.
  [[nodiscard]] bool lost() const;
  /// The number of owners of the range that has the fewest; 0 where there are no ranges.
  [[nodiscard]] std::size_t copies_min() const;
};
using ConfigurationPtr = std::shared_ptr<const Configuration>;

/// A majority, or an exact half that holds the lowest of the council: any two of these meet. Both
/// lists ascending.
[[nodiscard]] bool is_quorum(std::span<const MemberId> council, std::span<const MemberId> voters);

/// What epoch 1 is: each range has `copies` owners, or all there are, and loads differ by one at
/// most; where `coordinated`, one member keeps the steps: one that does nothing else, if there is
/// any. Requires: a member that owns; members by id.
[[nodiscard]] Configuration first_configuration(std::vector<Member> members, std::size_t ranges,
                                                std::size_t copies, bool coordinated = false);

/// What the next configuration is to bring.
struct PendingChanges {
  /// Owners asked for a range.
  std::size_t copies = 2;
  /// Members that may own, on as many nodes. Where there are fewer than this, or than `copies`,
  /// members on nodes without one are made to, as long as there are such.
  std::size_t owners = 0;
  /// Bulk-synchronous jobs: who computes decides when a round is complete, so that every change of
  /// that starts a new view of every range.
  bool bsp = false;
  std::vector<Member> joins = {};
  /// Members that want to go once nothing depends on them.
  std::vector<MemberId> leaves = {};
  /// Members suspected to be dead, in the incarnation that the configuration names.
  std::vector<MemberId> dead = {};
  /// By range, which of its owners are known to hold all that was acknowledged, ascending.
  std::vector<std::vector<MemberId>> full = {};
  /// A range that no live owner is known to hold is given up; else it is named and nothing changes.
  bool give_up = false;
};

struct Successor {
  /// Absent where there is nothing to change, and where ranges are lost and not given up.
  std::shared_ptr<Configuration> next;
  /// Ranges that no live owner is known to hold.
  std::vector<RangeId> lost;
};

/// The configuration after `now`. Loads differ by one at most among those that may own, few ranges
/// move, a range that moves has its old and its new owners until the new ones hold it, and a
/// primary always holds its range. Where the coordinator goes, another member has its part.
/// Repeated with everyone full it comes to rest.
[[nodiscard]] Successor next_configuration(const Configuration& now, const PendingChanges& pending);

}  // namespace starling::core
