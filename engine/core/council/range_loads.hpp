/// Counts and balances the ranges of members while a configuration is planned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/council/configuration.hpp"

namespace starling::core {

/// The members that may own ranges, with the load of each: the number of ranges that it has.
class RangeLoads {
 public:
  /// All loads are 0 at first.
  explicit RangeLoads(std::span<const MemberId> ids) {
    for (const MemberId id : ids) loads_.push_back({id, 0});
  }
  [[nodiscard]] bool contains(MemberId id) const {
    return std::ranges::find(loads_, id, &Entry::id) != loads_.end();
  }
  /// add(), remove() and load_of() require: contains(id). most_loaded() and least_loaded() require:
  /// there is at least one member.
  void add(MemberId id) { ++loads_[index_of(id)].load; }
  void remove(MemberId id) { --loads_[index_of(id)].load; }
  [[nodiscard]] std::size_t load_of(MemberId id) const { return loads_[index_of(id)].load; }
  [[nodiscard]] MemberId most_loaded() const {
    return std::ranges::max_element(loads_, {}, &Entry::load)->id;
  }
  [[nodiscard]] MemberId least_loaded() const {
    return std::ranges::min_element(loads_, {}, &Entry::load)->id;
  }

 private:
  struct Entry {
    MemberId id;
    std::size_t load;
  };
  [[nodiscard]] std::size_t index_of(MemberId id) const {
    const auto entry = std::ranges::find(loads_, id, &Entry::id);
    STARLING_CHECK(entry != loads_.end());
    return static_cast<std::size_t>(entry - loads_.begin());
  }
  std::vector<Entry> loads_;
};

/// Returns the least loaded of `owners` that does not own `range`; among equals, the first that a
/// search from index `start` finds. Requires: at least one of `owners` does not own `range`.
inline MemberId least_loaded_non_owner(const Ownership& range, const std::vector<MemberId>& owners,
                                       std::size_t start, const RangeLoads& loads) {
  std::optional<MemberId> best;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const MemberId id = owners[(start + i) % owners.size()];
    if (range.find(id) == nullptr && (!best || loads.load_of(id) < loads.load_of(*best))) best = id;
  }
  STARLING_CHECK(best);
  return *best;
}

/// Moves replicas that are not primary from the most to the least loaded owner, until loads differ
/// by at most one range or no replica can move.
inline void balance_replicas(Configuration& configuration, RangeLoads& loads) {
  while (loads.load_of(loads.most_loaded()) > loads.load_of(loads.least_loaded()) + 1) {
    const MemberId from = loads.most_loaded();
    const MemberId to = loads.least_loaded();
    const auto range = std::ranges::find_if(configuration.ranges, [&](const Ownership& ownership) {
      return ownership.find(from) != nullptr && ownership.owners.front().id != from &&
             ownership.find(to) == nullptr;
    });
    if (range == configuration.ranges.end()) return;
    std::ranges::find(range->owners, from, &RangeOwner::id)->id = to;
    loads.remove(from);
    loads.add(to);
  }
}

}  // namespace starling::core
