#include "starling/actor/system.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace starling::actor {
namespace {

// Ends once it is released. It sends itself the messages, so that no other thread frees it.
caf::behavior wait_for(caf::event_based_actor* self, const std::atomic<bool>& released) {
  self->send(self, 0);
  return {[self, &released](int) {
    if (released) {
      self->quit();
    } else {
      self->delayed_send(self, std::chrono::milliseconds{1}, 0);
    }
  }};
}

TEST(AwaitActors, LogsOnceThatAnActorHasNotEnded) {
  std::atomic<bool> released = false;
  std::vector<std::string> lines;
  Config config{1};
  caf::actor_system system{config};
  system.spawn([&](caf::event_based_actor* self) { return wait_for(self, released); });
  await_actors(
      system,
      [&](const std::string& line) {
        lines.push_back(line);
        released = true;
      },
      std::chrono::milliseconds{1});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("waits for 1 actors that have not ended"), std::string::npos) << lines[0];
  await_actors(system, [&](const std::string&) { ADD_FAILURE() << "all have ended"; });
}

int niceness_of_this_thread() {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)));
}

/// Returns the nice value that the system gives a thread with this priority, which is lower than
/// that of the process.
int niceness_with(ThreadPriority priority) {
  return std::min(
      19, ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid())) + static_cast<int>(priority));
}

TEST(ThreadPriority, IsRelativeToThatOfTheProcess) {
  int as_member = 0;
  int as_computing = 0;
  std::thread{[&] {
    set_priority(ThreadPriority::members);
    as_member = niceness_of_this_thread();
    set_priority(ThreadPriority::computing);
    as_computing = niceness_of_this_thread();
  }}.join();
  EXPECT_EQ(as_member, niceness_with(ThreadPriority::members));
  EXPECT_EQ(as_computing, niceness_with(ThreadPriority::computing));
}

/// Without the right to raise a priority, both threads have that of the process.
TEST(ThreadPriority, OfTheNetworkIsNotInherited) {
  int of_child = 0;
  std::thread{[&] {
    set_priority(ThreadPriority::network);
    keep_priority_from_children();
    std::thread{[&] { of_child = niceness_of_this_thread(); }}.join();
  }}.join();
  EXPECT_GE(of_child, 0);
}

TEST(Config, GivesTheThreadsOfActorsAPriority) {
  std::promise<int> of_actor;
  Config config{1, ThreadPriority::members};
  caf::actor_system system{config};
  system.spawn([&](caf::event_based_actor*) { of_actor.set_value(niceness_of_this_thread()); });
  EXPECT_EQ(of_actor.get_future().get(), niceness_with(ThreadPriority::members));
}

}  // namespace
}  // namespace starling::actor
