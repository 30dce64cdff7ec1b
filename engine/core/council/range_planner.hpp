/// Plans which members own which ranges in the next configuration. Each range moves on its own, in
/// two steps: new owners are added, and former ones go once the new ones are full, that is, once
/// they hold every acknowledged update of the range.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/council/range_loads.hpp"

namespace starling::core {

/// The input of a placement. The lists must outlive the planner.
struct PlacementInput {
  /// The owners of each range now.
  std::span<const Ownership> now;
  Epoch next_epoch = 0;
  /// The members that are to own ranges, ascending.
  std::span<const MemberId> eligible;
  /// The full owners of each range; see PendingChanges::full.
  std::span<const std::vector<MemberId>> full;
  /// The number of owners that each range should have.
  std::size_t replication_factor = 0;
  /// True if the member's present incarnation goes on.
  std::function<bool(MemberId)> survives;
};

/// A pure function of its input; not thread-safe.
class RangePlanner {
 public:
  explicit RangePlanner(PlacementInput input) : input_(std::move(input)) {}

  /// Returns the ranges that have owners now, but no full owner that survives.
  [[nodiscard]] std::vector<RangeId> lost() const;
  /// Returns the owners of each range in the next configuration. A lost range has none. A range
  /// whose owners stay the same keeps its owner epoch.
  [[nodiscard]] std::vector<Ownership> plan() const;

 private:
  /// By range: the members that own it once all moves are done.
  using FinalOwners = std::vector<std::vector<MemberId>>;

  [[nodiscard]] bool is_full_owner(RangeId range, MemberId id) const;
  [[nodiscard]] std::vector<RangeOwner> surviving_owners(RangeId range, bool only_full) const;
  [[nodiscard]] FinalOwners choose_final_owners() const;
  [[nodiscard]] MemberId choose_owner(RangeId range, const std::vector<MemberId>& chosen,
                                      const RangeLoads& loads) const;
  void move_one_range(FinalOwners& final_owners, RangeLoads& loads) const;
  [[nodiscard]] bool is_settled(RangeId range, const std::vector<MemberId>& final_owners) const;
  [[nodiscard]] std::vector<RangeOwner> next_owners(
      RangeId range, const std::vector<MemberId>& final_owners) const;
  void balance_primaries(std::vector<Ownership>& next, const FinalOwners& final_owners) const;

  PlacementInput input_;
};

}  // namespace starling::core
