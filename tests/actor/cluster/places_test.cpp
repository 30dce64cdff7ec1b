/// How many jobs and threads a node takes, in all and from one client.
#include "starling/actor/cluster/places.hpp"

#include <gtest/gtest.h>

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Places, AreSoManyOfAllAndOfOneClient) {
  Places places{{.jobs = 3, .jobs_per_client = 2, .threads = 10, .threads_per_client = 10}};
  EXPECT_TRUE(places.take(1, {}, "alice", 0s));
  EXPECT_TRUE(places.take(2, {}, "alice", 0s));
  EXPECT_TRUE(places.take(2, {}, "alice", 0s)) << "it has one already";
  const auto third = places.take(3, {}, "alice", 0s);
  ASSERT_FALSE(third);
  EXPECT_TRUE(holds(third.error().message, "2 jobs of alice")) << third.error().message;
  EXPECT_TRUE(holds(third.error().message, "(--jobs-per-client): 1, 2")) << third.error().message;
  EXPECT_TRUE(places.take(3, {}, "bob", 0s));
  const auto fourth = places.take(4, {}, "carol", 0s);
  ASSERT_FALSE(fourth);
  EXPECT_TRUE(holds(fourth.error().message, "(--jobs): alice has 2 jobs"))
      << fourth.error().message;
  EXPECT_TRUE(holds(fourth.error().message, "bob has 1 job ")) << fourth.error().message;
  places.give_up(1);
  EXPECT_TRUE(places.take(4, {}, "carol", 0s));
}

TEST(Places, HaveSoManyThreadsOfAllAndOfOneClient) {
  Places places{{.jobs = 9, .jobs_per_client = 9, .threads = 10, .threads_per_client = 6}};
  for (wire::JobId job = 1; job <= 3; ++job) EXPECT_TRUE(places.take(job, {}, "alice", 0s));
  EXPECT_TRUE(places.take(4, {}, "bob", 0s));
  EXPECT_TRUE(places.take_threads(1, 4));
  const auto more = places.take_threads(2, 3);
  ASSERT_FALSE(more);
  EXPECT_TRUE(
      holds(more.error().message, "its 3 compute threads would make 7 of the jobs of alice"))
      << more.error().message;
  EXPECT_TRUE(holds(more.error().message, "valid: up to 6 (the node's --threads-per-client)"));
  EXPECT_TRUE(places.take_threads(2, 2));
  EXPECT_TRUE(places.take_threads(2, 2)) << "its own are not counted twice";
  const auto all = places.take_threads(4, 5);
  ASSERT_FALSE(all);
  EXPECT_TRUE(holds(all.error().message, "would make 11 of all jobs")) << all.error().message;
  EXPECT_TRUE(places.take_threads(4, 4));
  EXPECT_FALSE(places.take_threads(5, 1)) << "it has no place";
}

TEST(Places, GoOnUnderAnotherNumber) {
  Places places{{}};
  EXPECT_TRUE(places.take(1, {{"model", "x"}}, "alice", 0s));
  places.hand_on(1, 2);
  EXPECT_EQ(places.find(1), nullptr);
  ASSERT_NE(places.find(2), nullptr);
  EXPECT_EQ(places.find(2)->client, "alice");
  places.hand_on(7, 2);
  EXPECT_NE(places.find(2), nullptr) << "nobody had number 7";
}

TEST(Places, ThatNobodyUsesAreNamed) {
  Places places{{}};
  EXPECT_TRUE(places.take(1, {}, "alice", 1s));
  EXPECT_TRUE(places.take(2, {}, "alice", 1s));
  EXPECT_TRUE(places.take(3, {}, "alice", 9s));
  const auto unused = places.unused([](wire::JobId job) { return job == 1; }, 5s);
  EXPECT_EQ(unused, std::vector<wire::JobId>{2});
}

}  // namespace
}  // namespace starling::actor
