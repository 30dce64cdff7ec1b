#include "starling/tools/cluster/follow/replicas.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace starling::program {
namespace {

/// Returns a job of 3 workers, on nodes 11 to 13, that own 6 ranges twice. All have answered:
/// worker 0 holds its 4 ranges, worker 1 holds 1 of 4, and worker 2 more than it owns.
JobSnapshot job_with_replicas() {
  JobSnapshot job;
  job.configuration = std::make_shared<const core::Configuration>(core::first_configuration(
      {{0, 1, true, true, 11}, {1, 1, true, true, 12}, {2, 1, true, true, 13}}, 6, 2));
  for (const auto& [id, held] : {std::pair{0U, 4U}, {1U, 1U}, {2U, 6U}}) {
    wire::MemberStatus status;
    status.member = id;
    status.incarnation = 1;
    status.ranges_held = held;
    job.members[id] = {status, "n"};
  }
  return job;
}

TEST(ModelCopies, AreInTransferUntilTheirOwnersHoldThem) {
  JobSnapshot job = job_with_replicas();
  EXPECT_EQ(replicas_in_transfer(job), 3U);
  EXPECT_EQ(range_count(job), 6U);
  EXPECT_EQ(whole_copies(job), 1U);
  job.members.at(1).status.incarnation = 2;
  EXPECT_EQ(replicas_in_transfer(job), 0U) << "what is known of worker 1 is out of date";
  job.members.at(0).status.ranges_held = 0;
  EXPECT_EQ(replicas_in_transfer(job), 4U);
  EXPECT_EQ(replicas_in_transfer({}), 0U);
}

TEST(ModelCopies, CountOwnersOnLiveNodes) {
  const JobSnapshot job = job_with_replicas();
  std::vector<core::NodeRecord> nodes(3);
  for (std::size_t i = 0; i < 3; ++i) nodes[i].id = 11 + i;
  EXPECT_EQ(fewest_live_owners(job, nodes), 2U);
  nodes[1].state = core::NodeState::suspect;
  EXPECT_EQ(fewest_live_owners(job, nodes), 2U) << "a suspect is live";
  nodes[1].state = core::NodeState::dead;
  EXPECT_EQ(fewest_live_owners(job, nodes), 1U);
  nodes.resize(1);
  EXPECT_EQ(fewest_live_owners(job, nodes), 0U);
  EXPECT_EQ(fewest_live_owners({}, nodes), 0U);
}

TEST(ModelCopies, AreMissedOncePerChange) {
  ReplicaMonitor monitor;
  const auto job = job_with_replicas();
  EXPECT_EQ(monitor.describe_change(*job.configuration, 2), "");
  EXPECT_EQ(monitor.describe_change(*job.configuration, 3),
            "ranges of the model have only 2 of the 3 wanted copies; the job has 3 nodes");
  EXPECT_EQ(monitor.describe_change(*job.configuration, 3), "");
  EXPECT_EQ(monitor.describe_change(*job.configuration, 2),
            "every range of the model is on 2 nodes again, once the new copies are complete");
}

TEST(ModelCopies, AreEqualIfAllHaveTheSameHashAfterTheSameRound) {
  EXPECT_EQ(have_equal_copies({{7, 123}, {7, 123}, {7, 123}}), true);
  EXPECT_EQ(have_equal_copies({{7, 123}, {7, 124}, {7, 123}}), false);
  EXPECT_EQ(have_equal_copies({{7, 123}}), true);
}

TEST(ModelCopies, AreNotComparedIfAHashIsMissingOrRoundsDiffer) {
  EXPECT_EQ(have_equal_copies({}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{0, 0}, {0, 0}}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{7, 123}, {0, 0}}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{7, 123}, {8, 123}}), std::nullopt);
}

}  // namespace
}  // namespace starling::program
