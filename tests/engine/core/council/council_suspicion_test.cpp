/// Councils weigh suspicions: when they are cause for a decision, and against whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/engine/core/council/chamber.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(Council, SuspicionOfOneIsNoCauseUntilItHasStood) {
  Chamber chamber{4, 6, 1};
  chamber.suspect(2, 3);
  chamber.settle(900ms);
  chamber.trust(2, 3);
  chamber.settle(30s);
  EXPECT_EQ(chamber.last(), 1U);
  chamber.suspect(2, 3);
  chamber.settle(40s);
  EXPECT_EQ(chamber.of(0).find(3), nullptr);
}

/// The leader can send but not receive: no other member suspects it, and without a remedy nothing
/// would ever be decided.
TEST(Council, DeafLeaderIsPassedOver) {
  Chamber chamber{5, 6, 1, 1};
  for (const MemberId other : {1U, 2U, 3U, 4U}) chamber.drop_incoming(0, other);
  chamber.settle(20s);
  for (const MemberId id : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(chamber.of(id).find(0), nullptr);
    EXPECT_EQ(chamber.of(id).members.size(), 4U);
  }
}

/// Its failure detection sees nothing wrong, but a request stands.
TEST(Council, NextInTheCouncilTakesInWhomTheFirstDoesNot) {
  Chamber chamber{4, 6, 1, 1};
  chamber.crash(0);
  for (const MemberId id : {1U, 2U})
    chamber.happen(id, [](Council& council, const auto& context) {
      council.join(context, {4, 1});
    });
  chamber.settle(1400ms);
  EXPECT_EQ(chamber.last(), 1U);
  chamber.settle(5s);
  EXPECT_NE(chamber.of(1).find(4), nullptr);
}

TEST(Council, OfTwoThatDoNotHearEachOtherOneGoes) {
  for (const bool both : {false, true}) {
    Chamber chamber{6, 6, 1};
    chamber.drop_incoming(4, 5);
    if (both) chamber.drop_incoming(5, 4);
    chamber.settle(20s);
    EXPECT_EQ(chamber.of(0).members.size(), 5U);
    EXPECT_EQ(chamber.of(0).find(5), nullptr) << "the one complained of, or the higher";
    EXPECT_TRUE(chamber.failures().empty());
  }
}

TEST(Council, WhatOthersSayIsNeverWorthARange) {
  Chamber chamber{5, 5, 1};
  const auto owners = chamber.of(0).ranges[1].owners;
  ASSERT_EQ(owners[0].id + owners[1].id, 1U + 2U);
  chamber.drop_incoming(3, 1);
  chamber.drop_incoming(4, 2);
  chamber.settle(50s);
  EXPECT_FALSE(chamber.of(0).lost());
  EXPECT_GT(chamber.last(), 1U);
}

TEST(Council, VerdictsOnAFormerLifeDoNotCount) {
  Chamber chamber{4, 6, 1};
  chamber.happen(0, [](Council& council, const auto& context) { council.suspect(context, 3, 0); });
  EXPECT_FALSE(chamber.suspects(0, 3));
  chamber.settle(30s);
  EXPECT_EQ(chamber.last(), 1U);
  chamber.happen(0, [](Council& council, const auto& context) {
    council.suspect(context, 3, 1);
    council.trust(context, 3, 0);
  });
  EXPECT_TRUE(chamber.suspects(0, 3));
}

/// Two owners of a range are suspected by all for `lasts`, and silent.
void lose_owners(Chamber& chamber, Time lasts) {
  const auto owners = chamber.of(0).ranges[0].owners;
  const auto all = [&](auto act) {
    for (MemberId id = 0; id < 5; ++id)
      for (const auto& owner : owners)
        if (std::ranges::find(owners, id, &RangeOwner::id) == owners.end()) act(id, owner.id);
  };
  all([&](MemberId id, MemberId owner) { chamber.suspect(id, owner); });
  chamber.settle(lasts);
  all([&](MemberId id, MemberId owner) { chamber.trust(id, owner); });
  chamber.settle(lasts + 10s);
}

TEST(Council, LostRangeThatTurnsOutToLiveIsNotGivenUp) {
  Chamber brief{5, 5, 1};
  lose_owners(brief, 900ms);  // give_up_after is 1 s
  for (MemberId id = 0; id < 5; ++id) EXPECT_FALSE(brief.of(id).lost());
  Chamber lengthy{5, 5, 1};
  lose_owners(lengthy, 2s);
  EXPECT_TRUE(lengthy.of(4).lost());
}

}  // namespace
}  // namespace starling::core
