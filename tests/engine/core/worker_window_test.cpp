/// Tests that a worker has at most `WorkerOptions::window` pulls or pushes in flight to each owner.
#include <gtest/gtest.h>

#include "starling/engine/core/worker/worker.hpp"

namespace starling::core {
namespace {

class WorkerWindow : public testing::Test {
 protected:
  /// Returns the number of effects since the last call.
  std::size_t count_effects() {
    const std::size_t count = effects_.size();
    effects_.clear();
    return count;
  }
  [[nodiscard]] Context now() { return {Time{0}, random_, effects_}; }
  static Value value_of(RangeId range) {
    return {range, 0, {Buffer::make<float>(1), 0, 1, nullptr}};
  }

  Random random_{1};
  Effects effects_;
};

/// Owner 0 has ranges 0 to 3, and owner 1 has range 4. The window is two ranges.
TEST_F(WorkerWindow, SendsTheNextPullOrPushAfterEachAnswer) {
  WorkerOptions options;
  options.barrier = barrier::parse("asp").value();
  options.window = 2;
  options.owner_of =
      std::make_shared<const std::vector<OwnerId>>(std::vector<OwnerId>{0, 0, 0, 0, 1});
  Worker worker{options};
  worker.start(now());
  EXPECT_EQ(count_effects(), 3U) << "two to owner 0, one to owner 1";
  worker.on(now(), value_of(4));
  EXPECT_EQ(count_effects(), 0U) << "no other range waits for owner 1";
  for (const RangeId range : {0U, 1U}) {
    worker.on(now(), value_of(range));
    ASSERT_EQ(effects_.size(), 1U);
    EXPECT_EQ(std::get<Pull>(std::get<Send>(effects_[0]).message).range, range + 2);
    count_effects();
  }
  worker.on(now(), value_of(2));
  worker.on(now(), value_of(3));
  ASSERT_EQ(effects_.size(), 1U);
  EXPECT_EQ(std::get<Compute>(effects_[0]).values.size(), 5U);
  count_effects();
  Update update{.parts = {}, .samples = 1};
  for (RangeId range = 0; range < 4; ++range)
    update.parts.push_back({range, value_of(range).value});
  worker.on_update(now(), 0, update);
  EXPECT_EQ(count_effects(), 2U);
  for (const RangeId range : {1U, 0U}) {
    worker.on(now(), Ack{range, 1});
    EXPECT_EQ(count_effects(), 1U);
  }
  worker.on(now(), Ack{2, 1});
  EXPECT_EQ(count_effects(), 0U);
  worker.on(now(), Ack{3, 1});
  EXPECT_EQ(worker.step(), 1U);
}

}  // namespace
}  // namespace starling::core
