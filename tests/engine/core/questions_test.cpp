/// Tests the questions that a member asks others for actors on its node.
#include <gtest/gtest.h>

#include "tests/engine/core/single_member.hpp"

namespace starling::core {
namespace {

TEST(OpenQuestions, AcceptsOneAnswerOfTheAskedMemberToItsQuestion) {
  SingleMember member;
  member.run([](auto& core, const auto& context) { core.ask(context, 1, {7, AskStep{}}); });
  ASSERT_EQ(member.sent<MemberQuestion>().size(), 1U);
  member.receive(2, MemberAnswer{7, WorkerStep{3}});
  EXPECT_TRUE(member.answers().empty()) << "another member was asked";
  member.receive(1, MemberAnswer{7, StepsReport{}});
  EXPECT_TRUE(member.answers().empty()) << "the question was another one";
  member.receive(1, MemberAnswer{8, WorkerStep{3}});
  EXPECT_TRUE(member.answers().empty()) << "the member has not asked this";
  member.receive(1, MemberAnswer{7, WorkerStep{3}});
  ASSERT_EQ(member.answers().size(), 1U);
  EXPECT_EQ(member.answers()[0].number, 7U);
  member.receive(1, MemberAnswer{7, WorkerStep{3}});
  EXPECT_TRUE(member.answers().empty()) << "it has the answer";
}

TEST(OpenQuestions, AnswersTheQuestionsToAMemberThatLeavesAndRefusesTheOldestOfTooMany) {
  SingleMember member{{0, 1}, true, 2};
  for (std::uint64_t number = 0; number < 1024; ++number)
    member.run([&](auto& core, const auto& context) {
      core.ask(context, number == 5 ? 2 : 1, {number, AskStep{}});
    });
  EXPECT_TRUE(member.answers().empty());
  member.run([](auto& core, const auto& context) { core.ask(context, 1, {1024, AskStep{}}); });
  ASSERT_EQ(member.answers().size(), 1U);
  EXPECT_EQ(member.answers()[0].number, 0U);
  EXPECT_EQ(std::get<Refusal>(member.answers()[0].answer).why,
            "no answer yet, and 1024 later questions by this node's member; valid: at most 1024 "
            "open questions at a time");
  member.receive(1, without(2, 1), 2);
  ASSERT_EQ(member.answers().size(), 1U);
  EXPECT_EQ(member.answers()[0].number, 5U);
  EXPECT_EQ(std::get<Refusal>(member.answers()[0].answer).why, "member 2 has left the job");
}

TEST(OpenQuestions, AreAskedWhenTheMemberHasJoined) {
  SingleMember joiner{{5, 1}, false, std::nullopt, false};
  joiner.run([](auto& core, const auto& context) { core.ask(context, 1, {7, AskStep{}}); });
  joiner.run([](auto& core, const auto& context) { core.start(context); });
  joiner.run([](auto& core, const auto& context) { core.ask(context, 6, {8, AskStep{}}); });
  EXPECT_TRUE(joiner.answers().empty());
  auto next = std::make_shared<Configuration>(initial_configuration());
  next->epoch = 4;
  next->members.push_back({5, 1});
  joiner.receive_unreliable(1, 1, ConfigurationPtr{next});
  const auto sent = joiner.sent<MemberQuestion>();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, 1U);
  EXPECT_EQ(sent[0].second.number, 7U);
  ASSERT_EQ(joiner.answers().size(), 1U);
  EXPECT_EQ(std::get<Refusal>(joiner.answers()[0].answer).why,
            "member 6 is not in the job, or not any more");
}

}  // namespace
}  // namespace starling::core
