/// Helpers that build configurations for tests and apply changes to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"

namespace starling::core {

inline std::vector<Member> members_of(std::initializer_list<MemberId> ids) {
  std::vector<Member> members;
  for (const MemberId id : ids) members.push_back({id, 1});
  return members;
}

/// Returns PendingChanges::full if every owner of each range is full.
inline std::vector<std::vector<MemberId>> all_owners_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) {
    full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.back().push_back(owner.id);
    std::ranges::sort(full.back());
  }
  return full;
}

/// Returns PendingChanges::full if only the primary of each range is full.
inline std::vector<std::vector<MemberId>> only_primaries_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) full.push_back({range.owners.front().id});
  return full;
}

/// Applies `pending` with all owners full until the configuration does not change any more.
inline Configuration apply_until_stable(Configuration now, PendingChanges pending) {
  for (int i = 0; i < 10; ++i) {
    pending.full = all_owners_full(now);
    const auto next = next_configuration(now, pending).next;
    if (!next) return now;
    EXPECT_EQ(next->epoch, now.epoch + 1);
    now = *next;
    std::erase_if(pending.leaves, [&](MemberId id) { return now.find(id) == nullptr; });
    pending.dead.clear();
    pending.joins.clear();
  }
  ADD_FAILURE() << "the configuration still changes after 10 epochs";
  return now;
}

}  // namespace starling::core
