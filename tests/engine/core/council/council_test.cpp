/// Tests that councils decide on one configuration for each epoch, even if messages are lost,
/// repeated or reordered.
#include "starling/engine/core/council/council.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/engine/core/council/council_network.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(Council, LowestMemberRemovesADeadMember) {
  CouncilNetwork network{5, 6, 1};
  network.crash(3);
  for (const MemberId id : {0U, 1U, 2U, 4U}) network.suspect(id, 3);
  network.run_to_end();
  for (const MemberId id : {0U, 1U, 2U, 4U}) {
    EXPECT_EQ(network.configuration(id).find(3), nullptr);
    EXPECT_EQ(network.epoch(id), network.last_epoch());
  }
  EXPECT_TRUE(network.failures().empty());
}

/// If a council adopted such a round, no higher round would be left for other proposers.
TEST(Council, DecidesAlthoughOneMemberClaimsRoundsFarAhead) {
  for (const std::uint64_t round :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 1, std::uint64_t{1} << 63U}) {
    CouncilNetwork network{5, 6, 1};
    const Ballot ballot{round, 4};
    const auto value = std::make_shared<const Configuration>(network.configuration(0));
    for (const MemberId id : {0U, 1U, 2U})
      for (const CouncilMessage& message :
           {CouncilMessage{Prepare{2, ballot}}, CouncilMessage{Accept{2, ballot, value}},
            CouncilMessage{Nack{2, ballot}}})
        network.run(id, [&](Council& council, const auto& context) {
          EXPECT_TRUE(council.on(context, 4, message));
        });
    network.crash(3);
    network.crash(4);
    for (const MemberId id : {0U, 1U, 2U})
      for (const MemberId dead : {3U, 4U}) network.suspect(id, dead);
    network.run_to_end();
    for (const MemberId id : {0U, 1U, 2U}) {
      EXPECT_EQ(network.configuration(id).find(3), nullptr) << round;
      EXPECT_EQ(network.epoch(id), network.last_epoch());
    }
    EXPECT_GT(network.last_epoch(), 1U);
    EXPECT_TRUE(network.failures().empty());
  }
}

/// A proposer that knows only early rounds catches up, because each Nack contains a later round.
TEST(Council, DecidesAlthoughOnlyOneMemberKnowsLateRounds) {
  CouncilNetwork network{3, 6, 1};
  for (std::uint64_t i = 1; i <= 10; ++i)
    network.run(0, [&](Council& council, const auto& context) {
      EXPECT_TRUE(council.on(context, 2, Prepare{2, {i * round_jump_max, 2}}));
    });
  network.crash(2);
  for (const MemberId id : {0U, 1U}) network.suspect(id, 2);
  network.run_to_end();
  for (const MemberId id : {0U, 1U}) EXPECT_EQ(network.configuration(id).find(2), nullptr);
}

TEST(Council, NextLowestMemberProposesIfTheLowestIsDead) {
  CouncilNetwork network{4, 6, 1};
  network.crash(0);
  for (const MemberId id : {1U, 2U, 3U}) network.suspect(id, 0);
  network.run_to_end();
  for (const MemberId id : {1U, 2U, 3U}) EXPECT_EQ(network.configuration(id).find(0), nullptr);
}

TEST(Council, DecidesNothingIfNoChangeIsDue) {
  CouncilNetwork network{4, 6, 1};
  network.run_to_end();
  EXPECT_EQ(network.last_epoch(), 1U);
}

TEST(Council, DropsRequestsToJoinThatHaveExpired) {
  for (const MemberId id : {1U, 2U}) {
    CouncilNetwork network{3, 6, 1, 1};
    network.run(id, [](Council& council, const auto& context) { council.join(context, {3, 1}); });
    network.run_until(20s);
    // Member 1 proposes after 1.5 s, and member 2 after 3 s, when the request has expired.
    EXPECT_EQ(network.configuration(0).find(3) != nullptr, id == 1);
  }
}

TEST(Council, RefusesToTakeBackAnIncarnationThatWasRemoved) {
  CouncilNetwork network{4, 6, 1};
  network.suspect(0, 3);
  network.run_until(10s);
  ASSERT_EQ(network.configuration(0).find(3), nullptr);
  network.run(0, [](Council& council, const auto& context) { council.join(context, {3, 1}); });
  network.run_until(20s);
  EXPECT_EQ(network.configuration(0).find(3), nullptr);
  network.run(0, [](Council& council, const auto& context) { council.join(context, {3, 2}); });
  network.run_until(30s);
  ASSERT_NE(network.configuration(0).find(3), nullptr);
  EXPECT_TRUE(network.configuration(0).departed.empty());
}

TEST(Council, MinorityDecidesNothingAndFails) {
  CouncilNetwork network{5, 6, 1};
  for (const MemberId id : {0U, 1U, 2U}) network.crash(id);
  for (const MemberId id : {3U, 4U})
    for (const MemberId dead : {0U, 1U, 2U}) network.suspect(id, dead);
  network.run_to_end();
  EXPECT_EQ(network.last_epoch(), 1U);
  ASSERT_FALSE(network.failures().empty());
  EXPECT_NE(network.failures().front().find("no majority"), std::string::npos);
}

TEST(Council, HalfWithTheLowestMemberDecides) {
  CouncilNetwork network{4, 6, 1};
  network.crash(2);
  network.crash(3);
  for (const MemberId id : {0U, 1U})
    for (const MemberId dead : {2U, 3U}) network.suspect(id, dead);
  network.run_to_end();
  EXPECT_EQ(network.configuration(0).members.size(), 2U);
  EXPECT_EQ(network.epoch(1), network.last_epoch());
}

TEST(Council, AllMembersLearnThatARangeHasNoLiveOwner) {
  CouncilNetwork network{5, 5, 1};
  const auto& owners = network.configuration(0).ranges[0].owners;
  const MemberId a = owners[0].id;
  const MemberId b = owners[1].id;
  network.crash(a);
  network.crash(b);
  for (MemberId id = 0; id < 5; ++id)
    for (const MemberId dead : {a, b}) network.suspect(id, dead);
  network.run_to_end();
  for (MemberId id = 0; id < 5; ++id)
    if (id != a && id != b) {
      EXPECT_TRUE(network.configuration(id).has_lost_range());
    }
}

TEST(Council, AddsAMemberThatAsksToJoin) {
  CouncilNetwork network{3, 6, 1, 1};
  network.run(0, [](Council& council, const auto& context) { council.join(context, {3, 1}); });
  network.run_to_end();
  EXPECT_NE(network.configuration(3).find(3), nullptr);
  for (const Ownership& range : network.configuration(3).ranges) EXPECT_EQ(range.owners.size(), 2U);
}

/// Several members propose at the same time, for different reasons.
TEST(Council, AgreesAlthoughMessagesAreLostRepeatedAndReordered) {
  std::size_t decided = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto members = static_cast<MemberId>(3 + seed % 7);
    CouncilNetwork network{members, 5, seed, 3};
    Random& random = network.random();
    const double loss = 0.3 * random.real();
    std::size_t dead = 0;
    for (int i = 0; i < 400; ++i) {
      const auto one = static_cast<MemberId>(random.below(members));
      const auto other = static_cast<MemberId>(random.below(members));
      switch (random.below(30)) {
        case 0:
          network.suspect(one, other);
          break;
        case 1:
          network.trust(one, other);
          break;
        case 2:
          network.run(one, [&](Council& council, const auto& context) {
            council.join(context, {static_cast<MemberId>(members + random.below(3)), 1});
          });
          break;
        case 3:
          network.run(one, [&](Council& council, const auto& context) {
            council.leave(context, {other, 1}, 1);
          });
          break;
        case 4:
          if (dead + 2 < members / 2 && random.below(4) == 0) {
            network.crash(one);
            ++dead;
          }
          break;
        default:
          network.step(loss, 0.2);
      }
      if (HasFatalFailure()) return;
    }
    decided += network.last_epoch() - 1;
  }
  EXPECT_GT(decided, 300U) << "the members decide often";
}

}  // namespace
}  // namespace starling::core
