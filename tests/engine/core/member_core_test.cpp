/// Tests the core of one member, together with the message validator: it refuses messages in the
/// name of another member, claims that cannot be true, and joiners beyond the maximum.
#include "starling/engine/core/member/member_core.hpp"

#include <gtest/gtest.h>

#include <set>

#include "starling/engine/core/member/message_validator.hpp"
#include "tests/engine/core/single_member.hpp"

namespace starling::core {
namespace {

TEST(MemberCore, DropsPacketsInItsOwnName) {
  SingleMember member;
  member.receive(0, EpochProbe{});
  EXPECT_EQ(member.core().state(), MemberCore::State::member);
}

TEST(MemberCore, DropsAQueryInTheNameOfAnotherMember) {
  SingleMember member;
  member.receive(1, StepQuery{2, 7});
  EXPECT_TRUE(member.sent<StepAnswer>().empty());
  member.receive(1, StepQuery{1, 7});
  ASSERT_EQ(member.sent<StepAnswer>().size(), 1U);
  EXPECT_EQ(member.sent<StepAnswer>()[0].first, 1U);
}

TEST(MemberCoreDeathTest, EndsTheProgramIfItsOptionsHaveNoRole) {
  EXPECT_DEATH(MemberCore{MemberOptions{}}, "broken invariant: role_options != nullptr");
}

/// Returns true if member `from` of a job with one range may send the message.
bool is_valid_from(const Configuration& current, MemberId from, const PeerMessage& peer_message) {
  static const Layout layout = make_layout({{.name = "w", .shape = {4}}}, sizeof(float), 1);
  TrainingOptions training;
  training.exchange.layout = std::make_shared<const Layout>(layout);
  training.exchange.applier = merge_applier<float>([](const auto&, auto, auto) {});
  const AnyRole role = make_role(std::make_shared<const TrainingOptions>(std::move(training)),
                                 {{}, members_max, {}});
  return is_valid({current, from, members_max}, role, peer_message);
}

TEST(MessageValidator, RefusesMessagesInTheNameOfAnotherMember) {
  Configuration current = initial_configuration();
  current.coordinator = 2;
  const auto is_valid_from = [&](MemberId from, const PeerMessage& peer_message) {
    return starling::core::is_valid_from(current, from, peer_message);
  };
  for (const MemberId named : {0U, 1U}) {
    const bool is_own = named == 1;
    EXPECT_EQ(is_valid_from(1, StepQuery{named, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, StepAnswer{named, 1, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, NotifyRequest{named, 1, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, Notice{named, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, Arrived{named, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, Ended{named, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, WorkerStatus{named, WorkerStatus::Phase::idle, 0, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, WorkerStatus{named, WorkerStatus::Phase::going, 1, 1}), is_own);
    EXPECT_EQ(is_valid_from(1, Pull{named, 0, 0, nullptr}), is_own);
    EXPECT_EQ(is_valid_from(1, Push{named, 1, 0, 1, 1, 1, {}}), is_own);
    EXPECT_EQ(is_valid_from(1, LeaveRequest{{named, 1}}), is_own);
    EXPECT_EQ(is_valid_from(1, CouncilMessage{Prepare{2, {1, named}}}), is_own);
  }
  const auto is_valid_pace = [&](Step step, PaceReport pace) {
    return is_valid_from(1, StepAnswer{1, 1, step, pace});
  };
  constexpr std::uint64_t year = PaceReport::duration_max_ns;
  EXPECT_TRUE(is_valid_pace(not_begun, {year, year, year, true}));
  EXPECT_FALSE(is_valid_pace(not_begun + 1, {}));
  EXPECT_FALSE(is_valid_pace(1, {year + 1, 0, 0, false})) << "an honest sender cuts it to a year";
  EXPECT_FALSE(is_valid_pace(1, {0, year + 1, 0, false}));
  EXPECT_FALSE(is_valid_pace(1, {0, 0, year + 1, false}));
  EXPECT_FALSE(is_valid_from(1, Push{1, 2, 0, 1, 1, 1, {}})) << "another incarnation";
  EXPECT_FALSE(is_valid_from(1, LeaveRequest{{1, 2}}));
  for (const PeerMessage& message : {PeerMessage{Proceed{1}}, PeerMessage{Stop{}}}) {
    EXPECT_TRUE(is_valid_from(2, message));
    EXPECT_FALSE(is_valid_from(1, message));
  }
  current.coordinator.reset();
  EXPECT_FALSE(is_valid_from(2, Proceed{1})) << "the job has no coordinator";
  current.members[1].works = false;
  EXPECT_FALSE(is_valid_from(1, Arrived{1, 1})) << "member 1 is not a worker";
  EXPECT_FALSE(is_valid_from(1, Ended{1, 1}));
  EXPECT_FALSE(is_valid_from(1, WorkerStatus{1, WorkerStatus::Phase::going, 1, 1}));
  EXPECT_TRUE(is_valid_from(1, WorkerStatus{1, WorkerStatus::Phase::idle, 0, 1}));
  const MemberId primary = current.ranges[0].owners.front().id;
  EXPECT_TRUE(is_valid_from(primary, Ack{0, 1, 1, 1}));
  EXPECT_FALSE(is_valid_from((primary + 1) % 3, Ack{0, 1, 1, 1}));
}

TEST(MessageValidator, RefusesRangesMembersAndStepsThatCannotExist) {
  const Configuration current = initial_configuration();
  const auto is_valid = [&](const PeerMessage& peer_message) {
    return is_valid_from(current, 1, peer_message);
  };
  EXPECT_FALSE(is_valid(Pull{1, 1, 0, nullptr})) << "the job has one range";
  EXPECT_FALSE(is_valid(Value{1, 0, {}}));
  EXPECT_FALSE(is_valid(Ack{1, 1, 1, 1}));
  EXPECT_FALSE(is_valid(Held{1, 1, 1}));
  EXPECT_FALSE(is_valid(Install{1, nullptr}));
  EXPECT_FALSE(is_valid(Forward{0, 1, 1, nullptr, members_max}));
  const auto pushed = std::make_shared<const Push>(Push{.worker = 0,
                                                        .incarnation = 1,
                                                        .range = 0,
                                                        .step = 1,
                                                        .samples = 1,
                                                        .samples_total = 1,
                                                        .update = {}});
  EXPECT_TRUE(is_valid(Forward{0, 1, 1, pushed, 0, 3}));
  for (const std::uint32_t workers : {0U, members_max + 1})
    EXPECT_FALSE(is_valid(Forward{0, 1, 1, pushed, 0, workers}));
  EXPECT_FALSE(is_valid(JoinRequest{{members_max, 1}}));
  EXPECT_TRUE(is_valid(JoinRequest{{members_max - 1, 1}}));
  auto next = std::make_shared<Configuration>(current);
  next->epoch = 2;
  EXPECT_TRUE(is_valid(CouncilMessage{Accept{2, {1, 1}, next}}));
  next->members.push_back({members_max, 1});
  EXPECT_FALSE(is_valid(CouncilMessage{Accept{2, {1, 1}, next}}));
  EXPECT_FALSE(is_valid(ConfigurationPtr{next}));
  EXPECT_FALSE(is_valid(ConfigurationPtr{}));
  next->members.pop_back();
  next->ranges[0].owners.push_back({5, 2});
  EXPECT_FALSE(is_valid(ConfigurationPtr{next})) << "owner 5 is not a member";
  next->ranges[0].owners.pop_back();
  EXPECT_TRUE(is_valid(ConfigurationPtr{next}));
  next->coordinator = 1;
  EXPECT_FALSE(is_valid(ConfigurationPtr{next})) << "this job has no coordinator";
  EXPECT_FALSE(is_valid(Arrived{1, barrier::finished})) << "a worker that arrives has not finished";
  EXPECT_FALSE(is_valid(Ended{1, barrier::finished + 1}));
  EXPECT_TRUE(is_valid(Ended{1, barrier::finished})) << "the worker had no step to make";
  EXPECT_FALSE(is_valid(WorkerStatus{1, WorkerStatus::Phase::going, barrier::finished + 1, 0}));
  EXPECT_FALSE(is_valid(WorkerStatus{1, WorkerStatus::Phase::going, 1, barrier::finished}));
}

TEST(MessageValidator, AcceptsConfigurationsWhoseCoordinatorIsAMember) {
  Configuration current = initial_configuration();
  current.coordinator = 2;
  const auto may_be_next = [&](std::optional<MemberId> coordinator) {
    auto next = std::make_shared<Configuration>(current);
    next->epoch = 2;
    next->coordinator = coordinator;
    return is_valid_from(current, 1, ConfigurationPtr{std::move(next)});
  };
  EXPECT_TRUE(may_be_next(2));
  EXPECT_TRUE(may_be_next(0));
  EXPECT_FALSE(may_be_next(3)) << "3 is not a member";
  EXPECT_FALSE(may_be_next(std::nullopt)) << "this job has a coordinator";
}

TEST(MemberCore, PassesOnAJoinRequestOnlyIfItComesFromTheJoiner) {
  SingleMember member;
  member.receive_unreliable(4, 1, JoinRequest{{5, 1}});
  EXPECT_TRUE(member.sent<JoinRequest>().empty());
  member.receive_unreliable(5, 2, JoinRequest{{5, 1}});
  EXPECT_TRUE(member.sent<JoinRequest>().empty());
  member.receive_unreliable(5, 1, JoinRequest{{5, 1}});
  EXPECT_EQ(member.sent<JoinRequest>().size(), 2U)
      << "the request is passed on to the other two council members";
}

TEST(MemberCore, RefusesAJoinerBeyondTheMaximumAndSaysWhy) {
  SingleMember member;
  member.receive_unreliable(members_max, 1, JoinRequest{{members_max, 1}});
  const auto refused = member.sent<JoinRefused>();
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].second.why.find("below 8"), std::string::npos) << refused[0].second.why;
  EXPECT_TRUE(member.sent<JoinRequest>().empty());

  SingleMember joiner{{members_max, 1}, false};
  joiner.receive_unreliable(5, 1, JoinRefused{"no"});
  EXPECT_EQ(joiner.core().state(), MemberCore::State::joining) << "5 is not a seed member";
  joiner.receive_unreliable(1, 1, refused[0].second);
  EXPECT_EQ(joiner.core().state(), MemberCore::State::failed);
  EXPECT_NE(joiner.failure().find("below 8"), std::string::npos);
}

TEST(MemberCore, SendsTheConfigurationToAMemberThatClaimsALaterEpoch) {
  SingleMember member;
  member.receive(1, StepQuery{1, 1}, 1'000'000);
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 2;
  member.receive(2, ConfigurationPtr{next}, 2);
  member.receive(1, StepQuery{1, 2}, 1);
  EXPECT_EQ(member.sent<ConfigurationPtr>().size(), 1U);
  EXPECT_EQ(member.sent<StepAnswer>().size(), 1U);
}

TEST(MemberCore, IgnoresSuspicionsOfAFormerIncarnation) {
  SingleMember member;
  member.run([](auto& core, const auto& context) { core.suspect(context, 1, 0); });
  EXPECT_FALSE(member.core().suspects(1));
  member.run([](auto& core, const auto& context) { core.suspect(context, 1, 1); });
  EXPECT_TRUE(member.core().suspects(1));
}

TEST(MemberCore, IgnoresTimersOfALinkThatWasReplaced) {
  SingleMember member;
  member.receive(1, StepQuery{1, 1});
  member.advance(std::chrono::seconds{2});
  std::vector<TimerKey> keys;
  for (const MemberTimer& timer : member.timers()) keys.push_back(timer.key);
  ASSERT_FALSE(keys.empty());
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 2;
  next->members[1].incarnation = 2;
  member.receive(2, ConfigurationPtr{next}, 2);
  member.run([&](auto& core, const auto& context) { core.on_timer(context, keys.front()); });
  for (const auto& [to, peer_message] : member.sent<StepAnswer>()) EXPECT_NE(to, 1U);
  EXPECT_TRUE(member.timers().empty());
}

TEST(MemberCore, IncarnationThatWasAMemberDoesNotJoinAgain) {
  SingleMember joiner{{5, 1}, false};
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 4;
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.core().state(), MemberCore::State::joining);
  next = std::make_shared<Configuration>(*next);
  next->departed = {{5, 1}};
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.core().state(), MemberCore::State::excluded);
}

/// Returns the ballot of the Prepare that the member has sent in the last event.
Ballot prepared_ballot(const SingleMember& member) {
  for (const auto& [to, message] : member.sent<CouncilMessage>())
    if (const auto* prepare = std::get_if<Prepare>(&message)) return prepare->ballot;
  ADD_FAILURE() << "no Prepare";
  return {};
}

TEST(MemberCore, ThatDecidesItsOwnExclusionStaysUntilAnotherMemberKnowsIt) {
  SingleMember member;
  auto excluding = std::make_shared<Configuration>(*without(0, 1));
  excluding->coordinator.reset();
  const ConfigurationPtr next = excluding;
  member.run([](auto& core, const auto& context) { core.suspect(context, 2, 1); });
  member.receive(1, CouncilMessage{RangeReport{1, {0}}});
  const Ballot ballot = prepared_ballot(member);
  // An earlier ballot may have decided on `next`, so this member's ballot must.
  member.receive(1, CouncilMessage{Promise{2, ballot, {0, 1}, next}});
  member.receive(1, CouncilMessage{Accepted{2, ballot}});
  EXPECT_EQ(member.core().state(), MemberCore::State::member);
  const auto sent = member.sent<ConfigurationPtr>();
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent[0], std::pair(MemberId{1}, next));
  member.receive(1, ConfigurationPtr{next}, 2);
  EXPECT_EQ(member.core().state(), MemberCore::State::excluded);
}

/// The other one's vote may be needed, too.
TEST(MemberCore, ThatDecidesItsOwnExclusionTellsNobodyElseThatIsExcluded) {
  SingleMember member;
  auto excluding = std::make_shared<Configuration>(*without(0, 1));
  excluding->coordinator.reset();
  std::erase_if(excluding->members, [](const Member& one) { return one.id == 1; });
  std::erase(excluding->council, 1);
  excluding->ranges.front().owners = {{2, 2}};
  excluding->departed = {{0, 1}, {1, 1}};
  member.run([](auto& core, const auto& context) { core.suspect(context, 2, 1); });
  member.receive(1, CouncilMessage{RangeReport{1, {0}}});
  const Ballot ballot = prepared_ballot(member);
  member.receive(1, CouncilMessage{Promise{2, ballot, {0, 1}, excluding}});
  member.receive(1, CouncilMessage{Accepted{2, ballot}});
  EXPECT_EQ(member.core().state(), MemberCore::State::member);
  const auto sent = member.sent<ConfigurationPtr>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, 2U);
}

TEST(MemberCore, ReportsASuspicionAfterQuestionsThatNobodyAcknowledged) {
  SingleMember member;
  std::size_t answers = 0;
  std::set<TimerKey> timers;
  for (std::uint64_t draw = 1; draw <= 200; ++draw) {
    member.receive(1, StepQuery{1, draw});
    answers += member.sent<StepAnswer>().size();
    for (const MemberTimer& timer : member.timers()) timers.insert(timer.key);
    member.advance(std::chrono::milliseconds{10});
    if (draw % 10 == 0)  // the channels resend
      for (const TimerKey key : timers)
        member.run([&](auto& core, const auto& context) { core.on_timer(context, key); });
  }
  EXPECT_GT(answers, 10U);
  EXPECT_LT(answers, 64U) << "the whole window is in flight";
  member.run([](auto& core, const auto& context) { core.suspect(context, 2, 1); });
  member.advance(CouncilOptions{}.report_after);
  std::vector<CouncilMessage> reports;
  // The timer of the council has the key 0.
  member.run([](auto& core, const auto& context) { core.on_timer(context, 0); });
  for (const auto& [to, message] : member.sent<CouncilMessage>())
    if (to == 1 && std::holds_alternative<SuspicionReport>(message)) reports.push_back(message);
  EXPECT_EQ(reports.size(), 1U);
}

TEST(MemberCore, SendsANewCoordinatorItsStatusOnce) {
  SingleMember member{{0, 1}, true, 2};
  EXPECT_TRUE(member.sent<WorkerStatus>().empty())
      << "the first coordinator knows the first steps of the initial workers";
  member.receive(1, without(2, 1), 2);
  const auto sent = member.sent<WorkerStatus>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, 1U);
  EXPECT_EQ(sent[0].second.member, 0U);
  EXPECT_EQ(sent[0].second.phase, WorkerStatus::Phase::going);
  EXPECT_EQ(sent[0].second.step, 0U);
  auto later = std::make_shared<Configuration>(*without(2, 1));
  later->epoch = 3;
  member.receive(1, ConfigurationPtr{later}, 3);
  EXPECT_TRUE(member.sent<WorkerStatus>().empty()) << "it is the same coordinator";
}

TEST(MemberCore, BecomesCoordinatorAndCollectsTheStatuses) {
  SingleMember member{{0, 1}, true, 2};
  EXPECT_EQ(member.core().role<Training>().coordinator(), nullptr);
  member.receive(1, without(2, 0), 2);
  ASSERT_NE(member.core().role<Training>().coordinator(), nullptr);
  EXPECT_FALSE(member.core().role<Training>().coordinator()->knows_all_steps())
      << "member 1 has not sent its status yet";
  member.receive(1, WorkerStatus{1, WorkerStatus::Phase::waiting, 1, 1}, 2);
  EXPECT_TRUE(member.core().role<Training>().coordinator()->knows_all_steps());
  EXPECT_TRUE(member.sent<Proceed>().empty() || member.sent<Proceed>()[0].first == 1U);
}

TEST(MemberCore, IgnoresAFormerCoordinator) {
  SingleMember member{{0, 1}, true, 2};
  member.receive(1, without(2, 1), 2);
  for (const MemberId from : {2U, 0U}) {
    member.run([&](auto& core, const auto& context) {
      core.on_message(context, from, 1, std::make_shared<const PeerMessage>(Proceed{0}));
    });
    EXPECT_TRUE(member.sent<Pull>().empty());
  }
}

TEST(MemberCore, RefusesAConfigurationWithoutTheCoordinatorOfItsMode) {
  SingleMember joiner{{5, 1}, false, 2};
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 4;
  next->departed = {{5, 1}};
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.core().state(), MemberCore::State::joining);
  next = std::make_shared<Configuration>(*next);
  next->coordinator = 1;
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  EXPECT_EQ(joiner.core().state(), MemberCore::State::excluded);
}

}  // namespace
}  // namespace starling::core
