/// Configurations as the tests make them, and have them come to rest.
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

/// The owners of each range, as where all of them hold it.
inline std::vector<std::vector<MemberId>> everyone_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) {
    full.emplace_back();
    for (const RangeOwner& owner : range.owners) full.back().push_back(owner.id);
    std::ranges::sort(full.back());
  }
  return full;
}

/// The primary of each range alone.
inline std::vector<std::vector<MemberId>> primaries_full(const Configuration& configuration) {
  std::vector<std::vector<MemberId>> full;
  for (const Ownership& range : configuration.ranges) full.push_back({range.owners.front().id});
  return full;
}

/// Applies `pending` with everyone full until nothing changes.
inline Configuration settle(Configuration now, PendingChanges pending) {
  for (int i = 0; i < 10; ++i) {
    pending.full = everyone_full(now);
    const auto next = next_configuration(now, pending).next;
    if (!next) return now;
    EXPECT_EQ(next->epoch, now.epoch + 1);
    now = *next;
    std::erase_if(pending.leaves, [&](MemberId id) { return now.find(id) == nullptr; });
    pending.dead.clear();
    pending.joins.clear();
  }
  ADD_FAILURE() << "does not come to rest";
  return now;
}

}  // namespace starling::core
