/// The threads that destroy closed jobs, when destructors do not return.
#include "starling/actor/reaper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "tests/waiting.hpp"

namespace starling::actor {
namespace {

constexpr std::size_t threads = 4;

/// Makes objects whose destructors wait until this is destroyed.
class Hanging {
 public:
  ~Hanging() { release_.set_value(); }

  std::shared_ptr<void> make() {
    return {static_cast<void*>(this), [begun = begun_, released = released_](void*) {
              ++*begun;
              released.wait();
            }};
  }
  /// The number of destructors that have begun.
  [[nodiscard]] std::size_t begun() const { return *begun_; }

 private:
  /// Shared with destructors that begin after the end of this object.
  std::shared_ptr<std::atomic<std::size_t>> begun_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

std::shared_ptr<void> make_object(std::atomic<bool>& is_destroyed) {
  return {static_cast<void*>(&is_destroyed), [&](void*) { is_destroyed = true; }};
}

TEST(Reaper, CountsObjectsUntilTheyHang) {
  Reaper reaper{threads, std::chrono::hours{1}};
  Hanging hanging;
  for (std::size_t i = 0; i < threads + 1; ++i) reaper.destroy(hanging.make());
  EXPECT_TRUE(wait_until([&] { return hanging.begun() == threads; }));
  reaper.replace_hanging_threads();
  EXPECT_EQ(reaper.pending_count(), threads + 1);
  EXPECT_EQ(hanging.begun(), threads);
}

TEST(Reaper, ForgetsObjectsThatHang) {
  Reaper reaper{threads, std::chrono::seconds{0}};
  std::atomic<bool> is_destroyed = false;
  Hanging hanging;
  for (std::size_t i = 0; i < 2 * threads; ++i) {
    reaper.destroy(hanging.make());
    EXPECT_TRUE(wait_until([&] { return hanging.begun() == i + 1; }));
    reaper.replace_hanging_threads();
  }
  EXPECT_EQ(reaper.pending_count(), 0U);
  reaper.destroy(make_object(is_destroyed));
  EXPECT_TRUE(wait_until([&] { return is_destroyed.load(); }));
}

TEST(Reaper, CountsObjectsThatHangBeyondItsLimit) {
  Reaper reaper{threads, std::chrono::seconds{0}};
  Hanging hanging;
  for (std::size_t i = 0; i < Reaper::hanging_uncounted_max + threads; ++i) {
    reaper.destroy(hanging.make());
    EXPECT_TRUE(wait_until([&] { return hanging.begun() == i + 1; }));
    reaper.replace_hanging_threads();
  }
  EXPECT_EQ(reaper.pending_count(), threads);
}

}  // namespace
}  // namespace starling::actor
