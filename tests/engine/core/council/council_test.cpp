/// Councils decide one configuration an epoch, whatever becomes of their messages.
#include "starling/engine/core/council/council.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/engine/core/council/chamber.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(Council, LowestDecidesWithoutTheDead) {
  Chamber chamber{5, 6, 1};
  chamber.crash(3);
  for (const MemberId id : {0U, 1U, 2U, 4U}) chamber.suspect(id, 3);
  chamber.settle();
  for (const MemberId id : {0U, 1U, 2U, 4U}) {
    EXPECT_EQ(chamber.of(id).find(3), nullptr);
    EXPECT_EQ(chamber.epoch(id), chamber.last());
  }
  EXPECT_TRUE(chamber.failures().empty());
}

/// The last round there is would leave none for others.
TEST(Council, DecidesThoughOneNamesRoundsThatNobodyHasReached) {
  for (const std::uint64_t round :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 63U}) {
    Chamber chamber{5, 6, 1};
    const Ballot ballot{round, 4};
    const auto value = std::make_shared<const Configuration>(chamber.of(0));
    for (const MemberId id : {0U, 1U, 2U})
      for (const CouncilMessage& message :
           {CouncilMessage{Prepare{2, ballot}}, CouncilMessage{Accept{2, ballot, value}},
            CouncilMessage{Nack{2, ballot}}})
        chamber.happen(id, [&](Council& council, const auto& context) {
          EXPECT_TRUE(council.on(context, 4, message));
        });
    chamber.crash(3);
    chamber.crash(4);
    for (const MemberId id : {0U, 1U, 2U})
      for (const MemberId dead : {3U, 4U}) chamber.suspect(id, dead);
    chamber.settle();
    for (const MemberId id : {0U, 1U, 2U}) {
      EXPECT_EQ(chamber.of(id).find(3), nullptr) << round;
      EXPECT_EQ(chamber.epoch(id), chamber.last());
    }
    EXPECT_GT(chamber.last(), 1U);
    EXPECT_TRUE(chamber.failures().empty());
  }
}

/// A member that knows of fewer rounds catches up: each refusal tells it of later ones.
TEST(Council, DecidesThoughOnlyOneHasHeardOfLateRounds) {
  Chamber chamber{3, 6, 1};
  for (std::uint64_t i = 1; i <= 10; ++i)
    chamber.happen(0, [&](Council& council, const auto& context) {
      EXPECT_TRUE(council.on(context, 2, Prepare{2, {i * round_jump_max, 2}}));
    });
  chamber.crash(2);
  for (const MemberId id : {0U, 1U}) chamber.suspect(id, 2);
  chamber.settle();
  for (const MemberId id : {0U, 1U}) EXPECT_EQ(chamber.of(id).find(2), nullptr);
}

TEST(Council, NextLowestStepsInForTheLowest) {
  Chamber chamber{4, 6, 1};
  chamber.crash(0);
  for (const MemberId id : {1U, 2U, 3U}) chamber.suspect(id, 0);
  chamber.settle();
  for (const MemberId id : {1U, 2U, 3U}) EXPECT_EQ(chamber.of(id).find(0), nullptr);
}

TEST(Council, NothingIsDecidedWithoutCause) {
  Chamber chamber{4, 6, 1};
  chamber.settle();
  EXPECT_EQ(chamber.last(), 1U);
}

TEST(Council, WishesAreForgottenInTime) {
  for (const MemberId who : {1U, 2U}) {
    Chamber chamber{3, 6, 1, 1};
    chamber.happen(who, [](Council& council, const auto& context) {
      council.join(context, {3, 1});
    });
    chamber.settle(20s);
    // 1 has its turn after 1.5 s, 2 after 3 s, when the request does not hold any more.
    EXPECT_EQ(chamber.of(0).find(3) != nullptr, who == 1);
  }
}

TEST(Council, NoLifeIsAMemberTwice) {
  Chamber chamber{4, 6, 1};
  chamber.suspect(0, 3);
  chamber.settle(10s);
  ASSERT_EQ(chamber.of(0).find(3), nullptr);
  chamber.happen(0, [](Council& council, const auto& context) { council.join(context, {3, 1}); });
  chamber.settle(20s);
  EXPECT_EQ(chamber.of(0).find(3), nullptr);
  chamber.happen(0, [](Council& council, const auto& context) { council.join(context, {3, 2}); });
  chamber.settle(30s);
  ASSERT_NE(chamber.of(0).find(3), nullptr);
  EXPECT_TRUE(chamber.of(0).departed.empty());
}

TEST(Council, MinorityDecidesNothingAndSaysSoInTheEnd) {
  Chamber chamber{5, 6, 1};
  for (const MemberId id : {0U, 1U, 2U}) chamber.crash(id);
  for (const MemberId id : {3U, 4U})
    for (const MemberId dead : {0U, 1U, 2U}) chamber.suspect(id, dead);
  chamber.settle();
  EXPECT_EQ(chamber.last(), 1U);
  ASSERT_FALSE(chamber.failures().empty());
  EXPECT_NE(chamber.failures().front().find("no majority"), std::string::npos);
}

TEST(Council, HalfWithTheLowestGoesOn) {
  Chamber chamber{4, 6, 1};
  chamber.crash(2);
  chamber.crash(3);
  for (const MemberId id : {0U, 1U})
    for (const MemberId dead : {2U, 3U}) chamber.suspect(id, dead);
  chamber.settle();
  EXPECT_EQ(chamber.of(0).members.size(), 2U);
  EXPECT_EQ(chamber.epoch(1), chamber.last());
}

TEST(Council, RangesWithoutALiveOwnerEndTheJobForAll) {
  Chamber chamber{5, 5, 1};
  const auto& owners = chamber.of(0).ranges[0].owners;
  const MemberId a = owners[0].id;
  const MemberId b = owners[1].id;
  chamber.crash(a);
  chamber.crash(b);
  for (MemberId id = 0; id < 5; ++id)
    for (const MemberId dead : {a, b}) chamber.suspect(id, dead);
  chamber.settle();
  for (MemberId id = 0; id < 5; ++id)
    if (id != a && id != b) {
      EXPECT_TRUE(chamber.of(id).lost());
    }
}

TEST(Council, TakesInWhoWantsToJoin) {
  Chamber chamber{3, 6, 1, 1};
  chamber.happen(0, [](Council& council, const auto& context) { council.join(context, {3, 1}); });
  chamber.settle();
  EXPECT_NE(chamber.of(3).find(3), nullptr);
  for (const Ownership& range : chamber.of(3).ranges) EXPECT_EQ(range.owners.size(), 2U);
}

/// Two or more propose at once, for different reasons, and may receive nothing from one another for
/// long.
TEST(Council, AgreesWhateverBecomesOfItsMessages) {
  std::size_t decided = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto members = static_cast<MemberId>(3 + seed % 7);
    Chamber chamber{members, 5, seed, 3};
    Random& random = chamber.random();
    const double loss = 0.3 * random.real();
    std::size_t dead = 0;
    for (int i = 0; i < 400; ++i) {
      const auto one = static_cast<MemberId>(random.below(members));
      const auto other = static_cast<MemberId>(random.below(members));
      switch (random.below(30)) {
        case 0:
          chamber.suspect(one, other);
          break;
        case 1:
          chamber.trust(one, other);
          break;
        case 2:
          chamber.happen(one, [&](Council& council, const auto& context) {
            council.join(context, {static_cast<MemberId>(members + random.below(3)), 1});
          });
          break;
        case 3:
          chamber.happen(one, [&](Council& council, const auto& context) {
            council.leave(context, {other, 1});
          });
          break;
        case 4:
          if (dead + 2 < members / 2 && random.below(4) == 0) {
            chamber.crash(one);
            ++dead;
          }
          break;
        default:
          chamber.stir(loss, 0.2);
      }
      if (HasFatalFailure()) return;
    }
    decided += chamber.last() - 1;
  }
  EXPECT_GT(decided, 300U);  // else this test would show nothing
}

}  // namespace
}  // namespace starling::core
