/// Councils decide one configuration an epoch, whatever becomes of their messages.
#include "starling/engine/core/council/council.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

std::vector<Member> founders(MemberId count) {
  std::vector<Member> members;
  for (MemberId id = 0; id < count; ++id) members.push_back({id, 1});
  return members;
}

/// Councils and the messages in flight between them; a test decides which arrive, and when.
class Chamber {
 public:
  Chamber(MemberId members, std::size_t ranges, std::uint64_t seed, MemberId spare = 0)
      : random_(seed) {
    const auto first =
        std::make_shared<const Configuration>(first_configuration(founders(members), ranges, 2));
    decided_[1] = first;
    for (MemberId id = 0; id < members + spare; ++id) {
      CouncilOptions options{.self = {id, 1}};
      options.give_up_after = 1s;
      councils_.emplace_back(options);
      epochs_.push_back(0);
    }
    for (MemberId id = 0; id < members; ++id) adopt(id, first);
  }

  template <class Event>
  void happen(MemberId id, Event event) {
    if (crashed_.contains(id)) return;
    std::vector<CouncilEffect> effects;
    event(councils_[id], CouncilContext{now_, random_, effects});
    for (auto& effect : effects) execute(id, effect);
  }

  void suspect(MemberId id, MemberId whom) {
    happen(id, [&](Council& council, const auto& context) { council.suspect(context, whom, 1); });
  }
  void trust(MemberId id, MemberId whom) {
    happen(id, [&](Council& council, const auto& context) { council.trust(context, whom, 1); });
  }
  /// `id` receives nothing from `whom` from now on, and suspects it.
  void deafen(MemberId id, MemberId whom) {
    deaf_.insert({whom, id});
    suspect(id, whom);
  }
  void crash(MemberId id) { crashed_.insert(id); }

  /// One thing happens: a message arrives, is lost or comes twice, in any order; or time passes.
  /// False where nothing is left to happen.
  bool stir(double loss, double twice) {
    if (!in_flight_.empty() && (timers_.empty() || loss == 0 || random_.below(10) > 0)) {
      const std::size_t at = loss > 0 ? random_.below(in_flight_.size()) : 0;
      const Sent sent = in_flight_[at];
      if (random_.real() >= twice) in_flight_.erase(in_flight_.begin() + static_cast<long>(at));
      if (random_.real() >= loss) deliver(sent);
      return true;
    }
    if (timers_.empty()) return false;
    const auto [at, id] = *timers_.begin();
    timers_.erase(timers_.begin());
    now_ = std::max(now_, at);
    happen(id, [](Council& council, const auto& context) { council.on_timer(context); });
    return true;
  }
  void settle() {
    for (int i = 0; i < 20'000 && stir(0, 0); ++i) {
    }
  }
  /// As far as it goes before `until`.
  void settle(Time until) {
    while ((!in_flight_.empty() || (!timers_.empty() && timers_.begin()->first <= until)) &&
           stir(0, 0)) {
    }
    now_ = std::max(now_, until);
  }

  [[nodiscard]] const Configuration& of(MemberId id) const { return *decided_.at(epochs_[id]); }
  [[nodiscard]] Epoch epoch(MemberId id) const { return epochs_[id]; }
  [[nodiscard]] Epoch last() const { return decided_.rbegin()->first; }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }
  [[nodiscard]] bool suspects(MemberId id, MemberId whom) const {
    return councils_[id].suspects(whom);
  }
  [[nodiscard]] bool crashed(MemberId id) const { return crashed_.contains(id); }
  Random& random() { return random_; }

 private:
  struct Sent {
    MemberId from;
    MemberId to;
    CouncilMessage message;
    ConfigurationPtr configuration;
  };

  void execute(MemberId id, CouncilEffect& effect) {
    if (auto* send = std::get_if<CouncilSend>(&effect)) {
      in_flight_.push_back({id, send->to, send->message, nullptr});
    } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      timers_.insert({timer->at, id});
    } else if (const auto* fail = std::get_if<Fail>(&effect)) {
      failures_.push_back(fail->why);
    } else {
      const auto next = std::get<Decided>(effect).configuration;
      for (const Member& member : next->members) in_flight_.push_back({id, member.id, {}, next});
      adopt(id, next);
    }
  }

  void deliver(const Sent& sent) {
    if (deaf_.contains({sent.from, sent.to})) return;
    if (sent.configuration) return adopt(sent.to, sent.configuration);
    happen(sent.to, [&](Council& council, const auto& context) {
      if (!council.on(context, sent.from, sent.message) && epochs_[sent.to] > 0)
        in_flight_.push_back({sent.to, sent.from, {}, decided_.at(epochs_[sent.to])});
    });
  }

  /// Checks agreement: an epoch has one configuration, whichever member decided it.
  void adopt(MemberId id, const ConfigurationPtr& configuration) {
    const auto [known, fresh] = decided_.try_emplace(configuration->epoch, configuration);
    ASSERT_EQ(*known->second, *configuration);
    if (configuration->epoch <= epochs_[id] || !configuration->contains(id, 1)) return;
    epochs_[id] = configuration->epoch;
    happen(id, [&](Council& council, const auto& context) {
      std::vector<RangeId> full;
      for (RangeId r = 0; r < configuration->ranges.size(); ++r)
        if (configuration->ranges[r].find(id) != nullptr) full.push_back(r);
      council.on_configuration(context, configuration);
      council.hold(context, full);  // hand-over takes no time here
    });
  }

  Random random_;
  Time now_{};
  std::vector<Council> councils_;
  std::vector<Epoch> epochs_;
  std::map<Epoch, ConfigurationPtr> decided_;
  std::vector<Sent> in_flight_;
  std::multiset<std::pair<Time, MemberId>> timers_;
  std::set<MemberId> crashed_;
  /// Pairs of a sender and a receiver between which messages are lost.
  std::set<std::pair<MemberId, MemberId>> deaf_;
  std::vector<std::string> failures_;
};

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
  for (const MemberId other : {1U, 2U, 3U, 4U}) chamber.deafen(0, other);
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
    chamber.deafen(4, 5);
    if (both) chamber.deafen(5, 4);
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
  chamber.deafen(3, 1);
  chamber.deafen(4, 2);
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
