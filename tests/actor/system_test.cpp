#include "starling/actor/system.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
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

}  // namespace
}  // namespace starling::actor
