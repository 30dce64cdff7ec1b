/// Helpers that build configurations for tests and apply changes to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"

namespace starling::core {

/// Returns members in incarnation 1 that work and own.
inline std::vector<Member> members_of(std::initializer_list<MemberId> ids) {
  std::vector<Member> members;
  for (const MemberId id : ids) members.push_back({id, 1});
  return members;
}

/// Returns the value of PendingChanges::full that says that all owners are full: they hold every
/// acknowledged update.
inline std::vector<std::vector<MemberId>> all_owners_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) {
    full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.back().push_back(owner.id);
    std::ranges::sort(full.back());
  }
  return full;
}

/// Returns the value of PendingChanges::full that says that only the primary of each range is full.
inline std::vector<std::vector<MemberId>> only_primaries_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) full.push_back({range.owners.front().id});
  return full;
}

/// Applies `pending`, with all owners full, until the configuration no longer changes.
inline Configuration apply_until_stable(Configuration current, PendingChanges pending) {
  for (int i = 0; i < 10; ++i) {
    pending.full = all_owners_full(current);
    const auto next = next_configuration(current, pending).next;
    if (!next) return current;
    EXPECT_EQ(next->epoch, current.epoch + 1);
    current = *next;
    std::erase_if(pending.leaves, [&](MemberId id) { return current.find(id) == nullptr; });
    pending.dead.clear();
    pending.joins.clear();
  }
  ADD_FAILURE() << "the configuration still changes after 10 epochs";
  return current;
}

}  // namespace starling::core
