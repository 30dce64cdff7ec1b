/// Tests when suspicions lead to a decision, and which member the council then removes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <variant>
#include <vector>

#include "tests/engine/core/council/council_network.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(Council, RemovesAMemberThatOneOtherSuspectsForLong) {
  CouncilNetwork network{4, 6, 1};
  network.suspect(2, 3);
  network.run_until(900ms);
  network.trust(2, 3);
  network.run_until(30s);
  EXPECT_EQ(network.last_epoch(), 1U);
  network.suspect(2, 3);
  network.run_until(40s);
  EXPECT_EQ(network.configuration(0).find(3), nullptr);
}

/// The lowest member can send but not receive, so that no other member suspects it, and it cannot
/// decide.
TEST(Council, RemovesAProposerThatReceivesNothing) {
  CouncilNetwork network{5, 6, 1, 1};
  for (const MemberId other : {1U, 2U, 3U, 4U}) network.drop_incoming(0, other);
  network.run_until(20s);
  for (const MemberId id : {1U, 2U, 3U, 4U}) {
    EXPECT_EQ(network.configuration(id).find(0), nullptr);
    EXPECT_EQ(network.configuration(id).members.size(), 4U);
  }
}

/// Member 0, which should grant the request to join, has crashed, and no member suspects it.
TEST(Council, NextMemberAddsAJoinerIfTheLowestDoesNot) {
  CouncilNetwork network{4, 6, 1, 1};
  network.crash(0);
  for (const MemberId id : {1U, 2U})
    network.run(id, [](Council& council, const auto& context) { council.join(context, {4, 1}); });
  network.run_until(1400ms);
  EXPECT_EQ(network.last_epoch(), 1U);
  network.run_until(5s);
  EXPECT_NE(network.configuration(1).find(4), nullptr);
}

TEST(Council, RemovesOneOfTwoMembersThatDoNotReceiveFromEachOther) {
  for (const bool both : {false, true}) {
    CouncilNetwork network{6, 6, 1};
    network.drop_incoming(4, 5);
    if (both) network.drop_incoming(5, 4);
    network.run_until(20s);
    EXPECT_EQ(network.configuration(0).members.size(), 5U);
    EXPECT_EQ(network.configuration(0).find(5), nullptr)
        << "the suspected member, or, if both are suspected, the one with the higher id";
    EXPECT_TRUE(network.failures().empty());
  }
}

TEST(Council, KeepsARangeWhoseOwnersOnlyOtherMembersSuspect) {
  CouncilNetwork network{5, 5, 1};
  const auto owners = network.configuration(0).ranges[1].owners;
  ASSERT_EQ(owners[0].id + owners[1].id, 1U + 2U);
  network.drop_incoming(3, 1);
  network.drop_incoming(4, 2);
  network.run_until(50s);
  EXPECT_FALSE(network.configuration(0).has_lost_range());
  EXPECT_GT(network.last_epoch(), 1U);
}

/// Member 8, which is not in the council, alone holds a range: the other owner has not received it
/// yet. Member 7 does not receive from member 8.
TEST(Council, KeepsTheOnlyFullOwnerOfARangeAndRemovesTheMemberThatReportsIt) {
  CouncilNetwork network{9, 9, 1};
  const auto& owners = network.configuration(0).ranges[8].owners;
  ASSERT_EQ(owners.front().id, 8U);
  ASSERT_EQ(owners.back().id, 0U);
  ASSERT_FALSE(network.configuration(0).in_council(8));
  network.run(0, [](Council& council, const auto& context) {
    council.on_full_ranges(context, {0});  // and not range 8
  });
  network.drop_incoming(7, 8);
  network.run_until(20s);
  EXPECT_FALSE(network.configuration(0).has_lost_range());
  EXPECT_NE(network.configuration(0).find(8), nullptr);
  EXPECT_EQ(network.configuration(0).find(7), nullptr);
}

TEST(Council, IgnoresSuspicionsOfAFormerIncarnation) {
  CouncilNetwork network{4, 6, 1};
  network.run(0, [](Council& council, const auto& context) { council.suspect(context, 3, 0); });
  EXPECT_FALSE(network.suspects(0, 3));
  network.run_until(30s);
  EXPECT_EQ(network.last_epoch(), 1U);
  network.run(0, [](Council& council, const auto& context) {
    council.suspect(context, 3, 1);
    council.trust(context, 3, 0);
  });
  EXPECT_TRUE(network.suspects(0, 3));
}

/// Lets all other members suspect both owners of a range for `duration`, and then trust them again.
void suspect_both_owners(CouncilNetwork& network, Time duration) {
  const auto owners = network.configuration(0).ranges[0].owners;
  const auto for_each_pair = [&](auto act) {
    for (MemberId id = 0; id < 5; ++id)
      for (const auto& owner : owners)
        if (std::ranges::find(owners, id, &RangeOwner::id) == owners.end()) act(id, owner.id);
  };
  for_each_pair([&](MemberId id, MemberId owner) { network.suspect(id, owner); });
  network.run_until(duration);
  for_each_pair([&](MemberId id, MemberId owner) { network.trust(id, owner); });
  network.run_until(duration + 10s);
}

TEST(Council, KeepsARangeWhoseOwnersAreTrustedAgainInTime) {
  CouncilNetwork brief{5, 5, 1};
  suspect_both_owners(brief, 900ms);  // give_up_after is 1 s
  for (MemberId id = 0; id < 5; ++id) EXPECT_FALSE(brief.configuration(id).has_lost_range());
  CouncilNetwork lengthy{5, 5, 1};
  suspect_both_owners(lengthy, 2s);
  EXPECT_TRUE(lengthy.configuration(4).has_lost_range());
}

/// Member 2 reports for a moment that it does not hear member 3, the only owner of a range. Later,
/// the proposer suspects member 3 for a moment: the range has its whole grace then.
TEST(Council, WaitsAnewForAnOwnerThatIsSuspectedAgain) {
  CouncilOptions options;
  options.self = {0, 1};
  options.replication_factor = 1;
  Council council{options};
  Random random{1};
  Time now{};
  /// Returns true if the event begins a ballot.
  const auto begins_ballot = [&](auto event) {
    std::vector<CouncilEffect> effects;
    event(CouncilContext{now, random, effects});
    return std::ranges::any_of(effects, [](const CouncilEffect& effect) {
      const auto* sent = std::get_if<CouncilSend>(&effect);
      return sent != nullptr && std::holds_alternative<Prepare>(sent->message);
    });
  };
  const auto report = [&](std::vector<MemberIncarnation> silent) {
    return begins_ballot([&](const CouncilContext& context) {
      (void)council.on(context, 2, SuspicionReport{std::move(silent)});
    });
  };
  std::vector<Member> members;
  for (MemberId id = 0; id < 4; ++id) members.push_back({id, 1});
  const auto first = std::make_shared<const Configuration>(first_configuration(members, 4, 1));
  (void)begins_ballot([&](const CouncilContext& context) {
    council.on_full_ranges(context, {0});
    council.on_configuration(context, first);
  });
  now = 1s;
  EXPECT_FALSE(report({{3, 1}}));
  for (MemberId id = 0; id < 4; ++id)
    EXPECT_FALSE(begins_ballot([&](const CouncilContext& context) {
      (void)council.on(context, id, RangeReport{1, {id}});
    }));
  now = 2s;
  EXPECT_FALSE(report({}));
  now = 600s;
  EXPECT_FALSE(
      begins_ballot([&](const CouncilContext& context) { council.suspect(context, 3, 1); }));
  EXPECT_FALSE(begins_ballot([&](const CouncilContext& context) { council.on_timer(context); }));
}

}  // namespace
}  // namespace starling::core
