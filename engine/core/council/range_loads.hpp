/// Counts the ranges of each member while the next configuration is planned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/council/configuration.hpp"

namespace starling::core {

/// The members that may own ranges, with the load of each: the number of ranges that it has.
class RangeLoads {
 public:
  /// All loads are 0 at first.
  explicit RangeLoads(const std::vector<MemberId>& ids) {
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

}  // namespace starling::core
