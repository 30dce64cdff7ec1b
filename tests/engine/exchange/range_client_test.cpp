/// Tests that a worker has at most `RangeClientOptions::window` pulls or pushes in flight to each
/// owner.
#include "starling/engine/exchange/ownership/range_client.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

class RangeClientTest : public testing::Test {
 protected:
  /// Returns the number of effects since the last call.
  std::size_t count_effects() {
    const std::size_t count = effects_.size();
    effects_.clear();
    return count;
  }
  [[nodiscard]] OwnershipContext now() { return {Time{0}, random_, effects_}; }
  static Value value_of(RangeId range) {
    return {range, 0, {Buffer::make<float>(1), 0, 1, nullptr}};
  }

  Random random_{1};
  ExchangeEffects<OwnershipContext::Messages> effects_;
};

/// Owner 0 has ranges 0 to 3, and owner 1 has range 4. The window is two ranges.
TEST_F(RangeClientTest, SendsTheNextPullOrPushAfterEachAnswer) {
  RangeClient client{{.window = 2}};
  Configuration configuration;
  for (const OwnerId owner : {0U, 0U, 0U, 0U, 1U})
    configuration.ranges.push_back({0, {{.id = owner}}});
  client.on_configuration(now(), std::make_shared<const Configuration>(configuration));
  client.read(now(), {});
  EXPECT_EQ(count_effects(), 3U) << "two to owner 0, one to owner 1";
  client.on(now(), value_of(4));
  EXPECT_EQ(count_effects(), 0U) << "no other range waits for owner 1";
  for (const RangeId range : {0U, 1U}) {
    client.on(now(), value_of(range));
    ASSERT_EQ(effects_.size(), 1U);
    const auto& sent = std::get<SendToMember<OwnershipContext::Messages>>(effects_[0]);
    EXPECT_EQ(std::get<Pull>(sent.message).range, range + 2);
    count_effects();
  }
  client.on(now(), value_of(2));
  client.on(now(), value_of(3));
  ASSERT_EQ(effects_.size(), 1U);
  EXPECT_EQ(std::get<ReadDone>(effects_[0]).values.size(), 5U);
  count_effects();
  Update update{.parts = {}, .samples = 1};
  for (RangeId range = 0; range < 4; ++range)
    update.parts.push_back({range, value_of(range).value});
  client.write(now(), {.step = 1, .update = update, .samples_total = 1});
  EXPECT_EQ(count_effects(), 2U);
  for (const RangeId range : {1U, 0U}) {
    client.on(now(), Ack{range, 1});
    EXPECT_EQ(count_effects(), 1U);
  }
  client.on(now(), Ack{2, 1});
  EXPECT_EQ(count_effects(), 0U);
  client.on(now(), Ack{3, 1});
  ASSERT_EQ(effects_.size(), 1U);
  EXPECT_EQ(std::get<Written>(effects_[0]).step, 1U);
}

/// A value of no rows comes from another machine without a buffer; it is an answer all the same.
TEST_F(RangeClientTest, AcceptsAValueWithoutRows) {
  RangeClient client{{}};
  Configuration configuration;
  configuration.ranges.assign(2, {0, {{.id = 0}}});
  client.on_configuration(now(), std::make_shared<const Configuration>(configuration));
  const Rows none = std::make_shared<const std::vector<std::uint32_t>>();
  client.read(now(), {.plan = std::vector<RangeRows>{{0, none}, {1, nullptr}}});
  EXPECT_EQ(count_effects(), 2U);
  client.on(now(), Value{0, 0, {nullptr, 0, 0, none}});
  client.on(now(), Value{0, 0, {nullptr, 0, 0, none}});
  EXPECT_EQ(count_effects(), 0U) << "the second one repeats the first";
  client.on(now(), value_of(1));
  ASSERT_EQ(effects_.size(), 1U);
  EXPECT_EQ(std::get<ReadDone>(effects_[0]).values.size(), 2U);
}

}  // namespace
}  // namespace starling::core
