/// Tests the limits of the jobs and threads that a node accepts, in total and from one client.
#include "starling/actor/cluster/job_slots.hpp"

#include <gtest/gtest.h>

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(JobSlots, AreLimitedInTotalAndPerClient) {
  JobSlots slots{{.jobs = 3, .jobs_per_client = 2, .threads = 10, .threads_per_client = 10}};
  EXPECT_TRUE(slots.reserve(1, {}, "alice", 0s));
  EXPECT_TRUE(slots.reserve(2, {}, "alice", 0s));
  EXPECT_TRUE(slots.reserve(2, {}, "alice", 0s)) << "job 2 has a slot already";
  const auto third = slots.reserve(3, {}, "alice", 0s);
  ASSERT_FALSE(third);
  EXPECT_TRUE(contains(third.error().message, "2 jobs of alice")) << third.error().message;
  EXPECT_TRUE(contains(third.error().message, "(--jobs-per-client): 1, 2"))
      << third.error().message;
  EXPECT_TRUE(slots.reserve(3, {}, "bob", 0s));
  const auto fourth = slots.reserve(4, {}, "carol", 0s);
  ASSERT_FALSE(fourth);
  EXPECT_TRUE(contains(fourth.error().message, "(--jobs): alice has 2 jobs"))
      << fourth.error().message;
  EXPECT_TRUE(contains(fourth.error().message, "bob has 1 job ")) << fourth.error().message;
  slots.release(1);
  EXPECT_TRUE(slots.reserve(4, {}, "carol", 0s));
}

/// A node's status has the settings of all its jobs, and nobody receives one above 8 MiB.
TEST(JobSlots, LimitTheSettingsOfAllJobsTogether) {
  JobSlots slots{{.jobs = 1000, .jobs_per_client = 1000}};
  const wire::JobSettings settings{{"input", std::string(60'000, 'x')}};
  wire::JobId job = 1;
  Result<void> reserved{};
  while ((reserved = slots.reserve(job, settings, "alice", 0s))) ++job;
  EXPECT_EQ(job, 70U) << "69 times 60,013 bytes fit into 4 MiB";
  EXPECT_TRUE(contains(reserved.error().message,
                       "settings take 4200910 bytes together; valid: up to 4194304"))
      << reserved.error().message;
  EXPECT_TRUE(slots.reserve(70, {{"model", "softmax"}}, "alice", 0s)) << "a shorter one fits";
  slots.release(1);
  EXPECT_TRUE(slots.reserve(71, settings, "alice", 0s));
}

TEST(JobSlots, LimitThreadsInTotalAndPerClient) {
  JobSlots slots{{.jobs = 9, .jobs_per_client = 9, .threads = 10, .threads_per_client = 6}};
  for (wire::JobId job = 1; job <= 3; ++job) EXPECT_TRUE(slots.reserve(job, {}, "alice", 0s));
  EXPECT_TRUE(slots.reserve(4, {}, "bob", 0s));
  EXPECT_TRUE(slots.reserve_threads(1, 4));
  const auto more = slots.reserve_threads(2, 3);
  ASSERT_FALSE(more);
  EXPECT_TRUE(contains(more.error().message,
                       "the job's 3 compute threads would bring those of the jobs of alice to 7"))
      << more.error().message;
  EXPECT_TRUE(contains(more.error().message, "valid: up to 6 (the node's --threads-per-client)"));
  EXPECT_TRUE(slots.reserve_threads(2, 2));
  EXPECT_TRUE(slots.reserve_threads(2, 2)) << "the threads of job 2 are not counted twice";
  const auto all = slots.reserve_threads(4, 5);
  ASSERT_FALSE(all);
  EXPECT_TRUE(contains(all.error().message, "would bring those of all jobs to 11"))
      << all.error().message;
  EXPECT_TRUE(slots.reserve_threads(4, 4));
  EXPECT_FALSE(slots.reserve_threads(5, 1)) << "job 5 has no slot";
}

TEST(JobSlots, KeepTheirClientWhenTheJobGetsANewId) {
  JobSlots slots{{}};
  EXPECT_TRUE(slots.reserve(1, {{"model", "x"}}, "alice", 0s));
  slots.change_id(1, 2);
  EXPECT_EQ(slots.find(1), nullptr);
  ASSERT_NE(slots.find(2), nullptr);
  EXPECT_EQ(slots.find(2)->client, "alice");
  slots.change_id(7, 2);
  EXPECT_NE(slots.find(2), nullptr) << "there is no job 7 to replace it";
}

TEST(JobSlots, AreListedAsUnusedIfOldAndNotRunning) {
  JobSlots slots{{}};
  EXPECT_TRUE(slots.reserve(1, {}, "alice", 1s));
  EXPECT_TRUE(slots.reserve(2, {}, "alice", 1s));
  EXPECT_TRUE(slots.reserve(3, {}, "alice", 9s));
  const auto unused = slots.unused([](wire::JobId job) { return job == 1; }, 5s);
  EXPECT_EQ(unused, std::vector<wire::JobId>{2});
}

}  // namespace
}  // namespace starling::actor
