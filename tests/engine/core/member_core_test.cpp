/// Which messages a node believes: no member may send for another, claim more than it knows, or
/// join where there is no place.
#include "starling/engine/core/member/member_core.hpp"

#include <gtest/gtest.h>

#include "starling/engine/core/member/message_validator.hpp"

namespace starling::core {
namespace {

constexpr MemberId members_max = 8;

Configuration founding() {
  std::vector<Member> members;
  for (MemberId id = 0; id < 3; ++id) members.push_back({id, 1});
  return first_configuration(std::move(members), 1, 2);
}

/// MemberCore `self` of a job of three peers.
class Lone {
 public:
  explicit Lone(Member self = {0, 1}, bool founder = true,
                std::optional<MemberId> coordinator = std::nullopt)
      : node_(options(self, founder, coordinator)) {
    happen([](auto& node, const auto& context) { node.start(context); });
  }

  template <class Event>
  void happen(Event event) {
    out_.clear();
    event(node_, MemberContext{now_, random_, out_});
  }
  void receive(const Envelope& envelope) {
    happen([&](auto& node, const auto& context) { node.on_packet(context, envelope); });
  }
  /// From a member, through its channel.
  void receive(MemberId from, PeerMessage peer_message, Epoch epoch = 1) {
    receive({.from = from,
             .to = node_.self().id,
             .epoch = epoch,
             .packet = {.from = 1,
                        .to = node_.self().incarnation,
                        .sequence = ++sent_[from],
                        .payload = std::make_shared<const PeerMessage>(std::move(peer_message))}});
  }
  /// From anyone.
  void receive_unreliable(MemberId from, Incarnation incarnation, PeerMessage peer_message) {
    receive({.from = from,
             .to = node_.self().id,
             .packet = {.from = incarnation,
                        .payload = std::make_shared<const PeerMessage>(std::move(peer_message))}});
  }

  /// Returns the messages of type `M` that the last event sent, each with its receiver.
  template <class M>
  std::vector<std::pair<MemberId, M>> said() const {
    std::vector<std::pair<MemberId, M>> all;
    for (const MemberEffect& effect : out_)
      if (const auto* dispatch = std::get_if<Dispatch>(&effect); dispatch != nullptr)
        if (const auto& payload = dispatch->envelope.packet.payload)
          if (const auto* message = std::get_if<M>(&**payload))
            all.emplace_back(dispatch->envelope.to, *message);
    return all;
  }
  std::vector<MemberTimer> timers() const {
    std::vector<MemberTimer> all;
    for (const MemberEffect& effect : out_)
      if (const auto* timer = std::get_if<MemberTimer>(&effect)) all.push_back(*timer);
    return all;
  }
  std::string failure() const {
    for (const MemberEffect& effect : out_)
      if (const auto* fail = std::get_if<Fail>(&effect)) return fail->why;
    return {};
  }
  MemberCore<double>& node() { return node_; }
  void pass(Time time) { now_ += time; }

 private:
  static MemberOptions<double> options(Member self, bool founder,
                                       std::optional<MemberId> coordinator) {
    MemberOptions<double> options;
    options.self = self;
    if (coordinator) options.mode = Mode::central;
    options.members_max = members_max;
    options.worker.barrier = {barrier::Asp{}, std::nullopt};
    Layout layout;
    layout.parameters.push_back({.name = "sum", .shape = {1}});
    layout.offsets.push_back(0);
    layout.ranges.push_back({0, 1, 0, {{0, 0, 0, 1}}});
    layout.size = 1;
    options.shard.layout = std::make_shared<const Layout>(std::move(layout));
    options.shard.applier = Merge<double>{[](const auto&, auto, auto) {}};
    auto zero = Buffer::make<double>(1);
    zero->as<double>()[0] = 0;
    options.start = std::make_shared<const std::vector<RangeState>>(
        1, RangeState{
               .range = 0, .value = {std::move(zero), 0, 1, nullptr}, .slots = {}, .ledger = {}});
    Configuration first = founding();
    first.coordinator = coordinator;
    if (founder) options.first = std::make_shared<const Configuration>(std::move(first));
    options.seeds = {1, 2};
    return options;
  }

  Time now_{};
  Random random_{1};
  MemberEffects out_;
  MemberCore<double> node_;
  std::map<MemberId, std::uint64_t> sent_;
};

TEST(MemberCore, AnswersOnlyWhoAsksForItself) {
  Lone lone;
  lone.receive(1, StepQuery{2, 7});
  EXPECT_TRUE(lone.said<StepAnswer>().empty());
  lone.receive(1, StepQuery{1, 7});
  ASSERT_EQ(lone.said<StepAnswer>().size(), 1U);
  EXPECT_EQ(lone.said<StepAnswer>()[0].first, 1U);
}

/// A validator of messages from `from`, in a job with one range.
MessageValidator validator_at(const Configuration& now, MemberId from) {
  static const Layout layout = cut({{.name = "w", .shape = {4}}}, sizeof(float), 1);
  return {now, from, members_max, layout, sizeof(float)};
}

TEST(MessageValidator, LetsNobodySpeakForAnother) {
  Configuration now = founding();
  now.coordinator = 2;
  const auto may = [&](MemberId from, const PeerMessage& peer_message) {
    return validator_at(now, from).is_valid(peer_message);
  };
  for (const MemberId named : {0U, 1U}) {
    const bool own = named == 1;
    EXPECT_EQ(may(1, StepQuery{named, 1}), own);
    EXPECT_EQ(may(1, StepAnswer{named, 1, 1}), own);
    EXPECT_EQ(may(1, NotifyRequest{named, 1, 1}), own);
    EXPECT_EQ(may(1, Notice{named, 1}), own);
    EXPECT_EQ(may(1, Arrived{named, 1}), own);
    EXPECT_EQ(may(1, Ended{named, 1}), own);
    EXPECT_EQ(may(1, WorkerStatus{named, WorkerStatus::Phase::idle, 0, 1}), own);
    EXPECT_EQ(may(1, WorkerStatus{named, WorkerStatus::Phase::going, 1, 1}), own);
    EXPECT_EQ(may(1, Pull{named, 0, 0, nullptr}), own);
    EXPECT_EQ(may(1, Push{named, 1, 0, 1, 1, 1, {}}), own);
    EXPECT_EQ(may(1, LeaveRequest{{named, 1}}), own);
    EXPECT_EQ(may(1, CouncilMessage{Prepare{2, {1, named}}}), own);
  }
  EXPECT_FALSE(may(1, Push{1, 2, 0, 1, 1, 1, {}})) << "another incarnation";
  EXPECT_FALSE(may(1, LeaveRequest{{1, 2}}));
  for (const PeerMessage& word : {PeerMessage{Proceed{1}}, PeerMessage{Stop{}}}) {
    EXPECT_TRUE(may(2, word));
    EXPECT_FALSE(may(1, word));
  }
  now.coordinator.reset();
  EXPECT_FALSE(may(2, Proceed{1})) << "nobody keeps the steps";
  now.members[1].works = false;
  EXPECT_FALSE(may(1, Arrived{1, 1})) << "it does not work";
  EXPECT_FALSE(may(1, Ended{1, 1}));
  EXPECT_FALSE(may(1, WorkerStatus{1, WorkerStatus::Phase::going, 1, 1}));
  EXPECT_TRUE(may(1, WorkerStatus{1, WorkerStatus::Phase::idle, 0, 1}));
  const MemberId primary = now.ranges[0].owners.front().id;
  EXPECT_TRUE(may(primary, Ack{0, 1, 1, 1}));
  EXPECT_FALSE(may((primary + 1) % 3, Ack{0, 1, 1, 1}));
}

TEST(MessageValidator, LetsNothingInThatCannotBe) {
  const Configuration now = founding();
  const auto may = [&](const PeerMessage& peer_message) {
    return validator_at(now, 1).is_valid(peer_message);
  };
  EXPECT_FALSE(may(Pull{1, 1, 0, nullptr})) << "there is one range";
  EXPECT_FALSE(may(Value{1, 0, {}}));
  EXPECT_FALSE(may(Ack{1, 1, 1, 1}));
  EXPECT_FALSE(may(Held{1, 1, 1}));
  EXPECT_FALSE(may(Install{1, nullptr}));
  EXPECT_FALSE(may(Forward{0, 1, 1, nullptr, members_max}));
  EXPECT_FALSE(may(JoinRequest{{members_max, 1}}));
  EXPECT_TRUE(may(JoinRequest{{members_max - 1, 1}}));
  auto next = std::make_shared<Configuration>(now);
  next->epoch = 2;
  EXPECT_TRUE(may(CouncilMessage{Accept{2, {1, 1}, next}}));
  next->members.push_back({members_max, 1});
  EXPECT_FALSE(may(CouncilMessage{Accept{2, {1, 1}, next}}));
  EXPECT_FALSE(may(ConfigurationPtr{next}));
  EXPECT_FALSE(may(ConfigurationPtr{}));
  next->members.pop_back();
  next->ranges[0].owners.push_back({5, 2});
  EXPECT_FALSE(may(ConfigurationPtr{next})) << "an owner that is no member";
  next->ranges[0].owners.pop_back();
  EXPECT_TRUE(may(ConfigurationPtr{next}));
  next->coordinator = 1;
  EXPECT_FALSE(may(ConfigurationPtr{next})) << "nobody keeps the steps of this job";
  EXPECT_FALSE(may(Arrived{1, barrier::finished})) << "nobody comes so far";
  EXPECT_FALSE(may(Ended{1, barrier::finished + 1}));
  EXPECT_TRUE(may(Ended{1, barrier::finished})) << "there was nothing left to do";
  EXPECT_FALSE(may(WorkerStatus{1, WorkerStatus::Phase::going, barrier::finished + 1, 0}));
  EXPECT_FALSE(may(WorkerStatus{1, WorkerStatus::Phase::going, 1, barrier::finished}));
}

TEST(MessageValidator, TakesConfigurationsWhoseCoordinatorIsAMember) {
  Configuration now = founding();
  now.coordinator = 2;
  const auto may_be_next = [&](std::optional<MemberId> coordinator) {
    auto next = std::make_shared<Configuration>(now);
    next->epoch = 2;
    next->coordinator = coordinator;
    return validator_at(now, 1).is_valid(ConfigurationPtr{std::move(next)});
  };
  EXPECT_TRUE(may_be_next(2));
  EXPECT_TRUE(may_be_next(0));
  EXPECT_FALSE(may_be_next(3)) << "no member";
  EXPECT_FALSE(may_be_next(std::nullopt)) << "somebody keeps the steps of this job";
}

TEST(MemberCore, PassesOnRequestsOfThoseAloneWhoAskForThemselves) {
  Lone lone;
  lone.receive_unreliable(4, 1, JoinRequest{{5, 1}});
  EXPECT_TRUE(lone.said<JoinRequest>().empty());
  lone.receive_unreliable(5, 2, JoinRequest{{5, 1}});
  EXPECT_TRUE(lone.said<JoinRequest>().empty());
  lone.receive_unreliable(5, 1, JoinRequest{{5, 1}});
  EXPECT_EQ(lone.said<JoinRequest>().size(), 2U) << "to the council";
}

TEST(MemberCore, SaysWhyItTakesNobodyInBeyondTheMaximum) {
  Lone lone;
  lone.receive_unreliable(members_max, 1, JoinRequest{{members_max, 1}});
  const auto refused = lone.said<JoinRefused>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].second.why.find("below 8"), std::string::npos) << refused[0].second.why;
  EXPECT_TRUE(lone.said<JoinRequest>().empty());

  Lone joiner{{members_max, 1}, false};
  joiner.receive_unreliable(5, 1, JoinRefused{"no"});
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::joining) << "5 is no seed member";
  joiner.receive_unreliable(1, 1, refused[0].second);
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::failed);
  EXPECT_NE(joiner.failure().find("below 8"), std::string::npos);
}

TEST(MemberCore, TellsOfEpochsWhoeverOnlyClaimsToKnowThem) {
  Lone lone;
  lone.receive(1, StepQuery{1, 1}, 1'000'000);
  auto next = std::make_shared<Configuration>(founding());
  next->epoch = 2;
  lone.receive(2, ConfigurationPtr{next}, 2);
  lone.receive(1, StepQuery{1, 2}, 1);
  EXPECT_EQ(lone.said<ConfigurationPtr>().size(), 1U);
  EXPECT_EQ(lone.said<StepAnswer>().size(), 1U);
}

TEST(MemberCore, VerdictsOnAFormerLifeDoNotCount) {
  Lone lone;
  lone.happen([](auto& node, const auto& context) { node.suspect(context, 1, 0); });
  EXPECT_FALSE(lone.node().suspects(1));
  lone.happen([](auto& node, const auto& context) { node.suspect(context, 1, 1); });
  EXPECT_TRUE(lone.node().suspects(1));
}

TEST(MemberCore, TimersOfALinkThatWasReplacedAreNoOnesAnyMore) {
  Lone lone;
  lone.receive(1, StepQuery{1, 1});
  lone.pass(std::chrono::seconds{2});
  std::vector<TimerKey> keys;
  for (const MemberTimer& timer : lone.timers()) keys.push_back(timer.key);
  ASSERT_FALSE(keys.empty());
  auto next = std::make_shared<Configuration>(founding());
  next->epoch = 2;
  next->members[1].incarnation = 2;
  lone.receive(2, ConfigurationPtr{next}, 2);
  lone.happen([&](auto& node, const auto& context) { node.on_timer(context, keys.front()); });
  for (const auto& [to, peer_message] : lone.said<StepAnswer>()) EXPECT_NE(to, 1U);
  EXPECT_TRUE(lone.timers().empty());
}

TEST(MemberCore, ALifeThatWasAMemberDoesNotWaitToBeTakenInAgain) {
  Lone joiner{{5, 1}, false};
  auto next = std::make_shared<Configuration>(founding());
  next->epoch = 4;
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::joining);
  next = std::make_shared<Configuration>(*next);
  next->departed = {{5, 1}};
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::excluded);
}

/// The configuration after founding, without `gone`, under `coordinator`.
ConfigurationPtr without(MemberId gone, MemberId coordinator) {
  auto next = std::make_shared<Configuration>(founding());
  next->epoch = 2;
  std::erase_if(next->members, [&](const Member& member) { return member.id == gone; });
  std::erase(next->council, gone);
  for (Ownership& range : next->ranges)
    std::erase_if(range.owners, [&](const RangeOwner& owner) { return owner.id == gone; });
  next->departed = {{gone, 1}};
  next->coordinator = coordinator;
  return next;
}

TEST(MemberCore, TellsANewCoordinatorOnceWhereItStands) {
  Lone lone{{0, 1}, true, 2};
  EXPECT_TRUE(lone.said<WorkerStatus>().empty()) << "founders stand at the beginning";
  lone.receive(1, without(2, 1), 2);
  const auto said = lone.said<WorkerStatus>();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].first, 1U);
  EXPECT_EQ(said[0].second.member, 0U);
  EXPECT_EQ(said[0].second.phase, WorkerStatus::Phase::going);
  EXPECT_EQ(said[0].second.step, 0U);
  auto later = std::make_shared<Configuration>(*without(2, 1));
  later->epoch = 3;
  lone.receive(1, ConfigurationPtr{later}, 3);
  EXPECT_TRUE(lone.said<WorkerStatus>().empty()) << "it is the same coordinator";
}

TEST(MemberCore, TakesOverWhereTheConfigurationSaysSoAndTellsAll) {
  Lone lone{{0, 1}, true, 2};
  EXPECT_EQ(lone.node().coordinator(), nullptr);
  lone.receive(1, without(2, 0), 2);
  ASSERT_NE(lone.node().coordinator(), nullptr);
  EXPECT_FALSE(lone.node().coordinator()->knows_all()) << "member 1 has not told yet";
  lone.receive(1, WorkerStatus{1, WorkerStatus::Phase::waiting, 1, 1}, 2);
  EXPECT_TRUE(lone.node().coordinator()->knows_all());
  EXPECT_TRUE(lone.said<Proceed>().empty() || lone.said<Proceed>()[0].first == 1U);
}

TEST(MemberCore, HearsNoFormerCoordinator) {
  Lone lone{{0, 1}, true, 2};
  lone.receive(1, without(2, 1), 2);
  for (const MemberId from : {2U, 0U}) {
    lone.happen([&](auto& node, const auto& context) {
      node.on_message(context, from, 1, std::make_shared<const PeerMessage>(Proceed{0}));
    });
    EXPECT_TRUE(lone.said<Pull>().empty());
  }
}

TEST(MemberCore, BelievesNoConfigurationWithoutTheCoordinatorOfItsMode) {
  Lone joiner{{5, 1}, false, 2};
  auto next = std::make_shared<Configuration>(founding());
  next->epoch = 4;
  next->departed = {{5, 1}};
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::joining);
  next = std::make_shared<Configuration>(*next);
  next->coordinator = 1;
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.node().state(), MemberCore<double>::State::excluded);
}

}  // namespace
}  // namespace starling::core
