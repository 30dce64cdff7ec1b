/// Counts the ranges that each of some members holds, while a configuration is planned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/council/configuration.hpp"

namespace starling::core {

/// Counts the ranges that each of some members holds.
class Loads {
 public:
  explicit Loads(const std::vector<MemberId>& ids) {
    for (const MemberId id : ids) loads_.push_back({id, 0});
  }
  [[nodiscard]] bool knows(MemberId id) const {
    return std::ranges::find(loads_, id, &Entry::id) != loads_.end();
  }
  /// Requires: knows(id), as for all that follow.
  void add(MemberId id) { ++loads_[place(id)].load; }
  void remove(MemberId id) { --loads_[place(id)].load; }
  [[nodiscard]] std::size_t of(MemberId id) const { return loads_[place(id)].load; }
  [[nodiscard]] MemberId most() const {
    return std::ranges::max_element(loads_, {}, &Entry::load)->id;
  }
  [[nodiscard]] MemberId least() const {
    return std::ranges::min_element(loads_, {}, &Entry::load)->id;
  }

 private:
  struct Entry {
    MemberId id;
    std::size_t load;
  };
  [[nodiscard]] std::size_t place(MemberId id) const {
    const auto at = std::ranges::find(loads_, id, &Entry::id);
    STARLING_CHECK(at != loads_.end());
    return static_cast<std::size_t>(at - loads_.begin());
  }
  std::vector<Entry> loads_;
};

}  // namespace starling::core
