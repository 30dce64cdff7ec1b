#include "starling/actor/compute/compute_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>

namespace starling::actor {
namespace {

TEST(ComputePool, RunsEachItemOnce) {
  std::vector<int> runs(1000);
  std::latch done{1000};
  ComputePool pool{3};
  for (int& count : runs)
    pool.submit([&](Scratch&) {
      ++count;
      done.count_down();
    });
  done.wait();
  EXPECT_EQ(runs, std::vector<int>(1000, 1));
}

TEST(ComputePool, WakesTheThreadThatFellAsleepLast) {
  std::latch all_started{3};
  ComputePool pool{3};
  for (int i = 0; i < 3; ++i) pool.submit([&](Scratch&) { all_started.arrive_and_wait(); });
  int same_thread_count = 0;
  std::thread::id last_thread;
  for (int i = 0; i < 60; ++i) {
    std::latch done{1};
    // After 2 ms, nearly always all threads sleep, and the one that ran last fell asleep last.
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    pool.submit([&](Scratch&) {
      same_thread_count += std::this_thread::get_id() == last_thread ? 1 : 0;
      last_thread = std::this_thread::get_id();
      done.count_down();
    });
    done.wait();
  }
  EXPECT_GT(same_thread_count, 40);
}

TEST(ComputePool, RunsWorkOnRequestIfItHasNoThreads) {
  std::string ran;
  ComputePool pool{0};
  for (const char name : {'a', 'b', 'c'}) pool.submit([&ran, name](Scratch&) { ran += name; });
  EXPECT_EQ(pool.queue_size(), 3U);
  Scratch scratch;
  pool.run(1, scratch);
  pool.run(1, scratch);
  EXPECT_EQ(ran, "bc");
  pool.close();
  EXPECT_EQ(pool.queue_size(), 0U);
}

TEST(ComputePool, GivesEachThreadMemoryOfItsOwn) {
  std::latch both_started{2};
  std::vector<Scratch*> scratches(2);
  ComputePool pool{2};
  for (Scratch*& scratch_of_thread : scratches)
    pool.submit([&](Scratch& scratch) {
      scratch_of_thread = &scratch;
      both_started.arrive_and_wait();
    });
  both_started.wait();
  EXPECT_NE(scratches[0], scratches[1]);
}

TEST(ComputePool, FinishesBegunWorkAndDropsTheRestWhenItCloses) {
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  std::latch first_started{1};
  ComputePool pool{1};
  for (int i = 0; i < 100; ++i)
    pool.submit([&](Scratch&) {
      if (begun++ == 0) first_started.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      ++ended;
    });
  first_started.wait();
  pool.close();
  EXPECT_EQ(begun, ended);
  EXPECT_LT(ended, 100);
  pool.submit([&](Scratch&) { ++begun; });
  EXPECT_EQ(begun, ended);
}

TEST(ComputePool, AcceptsWorkFromManyThreadsWhileItCloses) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> runs = 0;
    ComputePool pool{2};
    std::vector<std::jthread> senders;
    senders.reserve(4);
    for (int i = 0; i < 4; ++i)
      senders.emplace_back([&] {
        for (int j = 0; j < 100; ++j) pool.submit([&](Scratch&) { ++runs; });
      });
    pool.close();
    const int runs_at_close = runs;
    senders.clear();
    EXPECT_EQ(runs, runs_at_close);
  }
}

}  // namespace
}  // namespace starling::actor
