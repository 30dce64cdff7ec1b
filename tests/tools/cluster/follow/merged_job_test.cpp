#include "starling/tools/cluster/follow/merged_job.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace starling::program {
namespace {

using State = actor::MemberReport::State;

/// Returns a configuration of epoch `epoch` whose members are workers 0 and 1.
core::ConfigurationPtr configuration(core::Epoch epoch, core::Incarnation incarnation_of_1 = 1) {
  auto made = std::make_shared<core::Configuration>(core::first_configuration(
      {{0, 1, true, true, 7}, {1, incarnation_of_1, true, true, 8}}, 1, 2, false));
  made->epoch = epoch;
  return made;
}

wire::JobStatus report(core::ConfigurationPtr configuration,
                       std::vector<wire::MemberStatus> local_members) {
  wire::JobStatus status;
  status.configuration = std::move(configuration);
  status.local_members = std::move(local_members);
  return status;
}

wire::MemberStatus member(core::MemberId id, core::Incarnation incarnation, State state,
                          std::uint64_t updates = 0) {
  wire::MemberStatus status;
  status.member = id;
  status.incarnation = incarnation;
  status.state = static_cast<std::uint8_t>(state);
  status.updates = updates;
  return status;
}

TEST(MergedJob, CountsTheMostUpdatesThatAnyNodeReports) {
  MergedJob job;
  wire::JobStatus first = report(configuration(1), {member(0, 1, State::running, 5)});
  first.counts.other_workers = {{{1, 1}, 9}, {{2, 1}, 4}};
  job.receive(first, "a");
  job.receive(report(configuration(1), {member(1, 1, State::running, 8)}), "b");
  EXPECT_EQ(job.updates_made(), 5U + 9U + 4U);
  ASSERT_EQ(job.workers().size(), 2U);
  EXPECT_EQ(job.members.at(1).node, "b");
}

TEST(MergedJob, KeepsTheMemberThatTheConfigurationHas) {
  MergedJob job;
  job.receive(report(configuration(2, 2), {member(1, 2, State::running)}), "b");
  job.receive(report(configuration(1), {member(1, 1, State::failed)}), "c");
  EXPECT_EQ(job.configuration->epoch, 2U);
  EXPECT_EQ(job.members.at(1).status.incarnation, 2U);
  EXPECT_EQ(job.member_failure(), "");
  job.receive(report(configuration(2, 2), {member(1, 2, State::failed)}), "b");
  EXPECT_EQ(job.member_failure(), "a member has failed");
}

TEST(MergedJob, IgnoresAConfigurationThatIsNotValid) {
  MergedJob job;
  job.receive(report(configuration(1), {}), "a");
  auto without_members = std::make_shared<core::Configuration>(*configuration(2));
  without_members->members.clear();
  job.receive(report(without_members, {}), "b");
  EXPECT_EQ(job.configuration->epoch, 1U);
}

TEST(MergedJob, TakesReasonsFromTheLatestEpochOnly) {
  MergedJob job;
  wire::JobStatus early = report(configuration(1), {});
  early.blocked_reason = "waits for x";
  early.give_up_reason = "given\nup";
  job.receive(early, "a");
  EXPECT_EQ(job.blocked_reason, "waits for x");
  EXPECT_EQ(job.give_up_reason, "given\\x0aup");
  job.receive(report(configuration(2), {}), "b");
  EXPECT_EQ(job.blocked_reason, "");
  job.receive(early, "a");
  EXPECT_EQ(job.give_up_reason, "");
  job.forget_reasons();
  job.receive(early, "a");
  EXPECT_EQ(job.blocked_reason, "waits for x") << "the nodes of epoch 2 do not answer any more";
  EXPECT_EQ(job.configuration->epoch, 2U);
}

}  // namespace
}  // namespace starling::program
