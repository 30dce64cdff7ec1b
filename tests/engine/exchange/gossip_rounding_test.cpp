/// Gossip whose values are sent with the precision of bfloat16.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <variant>

#include "starling/engine/exchange/gossip/gossip.hpp"
#include "tests/engine/exchange/exchange_harness.hpp"

namespace starling::core {
namespace {

class GossipRounding : public ExchangeHarness<GossipExchange, float> {
 protected:
  static constexpr MemberId workers = 5;

  GossipRounding() {
    applier_ =
        gradient_applier<float>({.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .batch = 1});
    rounds_to_bf16_ = true;
    start(1, workers);
  }

  [[nodiscard]] double initial_of(MemberId id) const override { return std::sqrt(2.0 + id); }
  /// Returns the sum of all values times their weights, in flight included.
  double numerators() {
    double all = 0;
    for (MemberId id = 0; id < workers; ++id) all += exchange(id).weight(0) * sum(id);
    for (const InFlight& message : in_flight_)
      if (const auto* sent = std::get_if<PushSum>(&message.sent.message))
        all += sent->weight * sent->value.as<float>()[0];
    return all;
  }
  /// Expects that no value in flight has more digits than bfloat16.
  void expect_rounded() {
    for (const InFlight& message : in_flight_)
      if (const auto* sent = std::get_if<PushSum>(&message.sent.message)) {
        EXPECT_TRUE(sent->value.travels_compact());
        EXPECT_EQ(std::bit_cast<std::uint32_t>(sent->value.as<float>()[0]) & 0xFFFFU, 0U);
      }
  }
};

TEST_F(GossipRounding, LosesNothingAndTendsToTheMean) {
  const double before = numerators();
  for (Step step = 1; step <= 60; ++step) {
    for (MemberId id = 0; id < workers; ++id)
      run(id, [&](auto& e, const auto& c) { e.write(c, {step, {}, step}); });
    expect_rounded();
    EXPECT_NEAR(numerators(), before, 1e-5 * before) << "after step " << step;
    while (!in_flight_.empty()) deliver(in_flight_.front().sent.to);
    EXPECT_NEAR(numerators(), before, 1e-5 * before) << "after the messages of step " << step;
  }
  // bfloat16 has a precision of 2^-8.
  for (MemberId id = 0; id < workers; ++id)
    EXPECT_NEAR(sum(id), before / workers, before / workers / 128) << id;
}

/// The last message has all of a worker's weight, so nothing stays that could keep the error.
TEST_F(GossipRounding, EndsWithAllBits) {
  run(1, [&](auto& e, const auto& c) { e.end(c, {1}); });
  const double before = numerators();
  const float last = exchange(1).copy<float>(0)[0];
  ASSERT_GT(in_flight<PushSum>(1, 0), 0);
  for (const InFlight& message : in_flight_)
    if (const auto* sent = std::get_if<PushSum>(&message.sent.message)) {
      EXPECT_EQ(sent->value.as<float>()[0], last);
      EXPECT_FALSE(sent->value.travels_compact());
    }
  while (!in_flight_.empty()) deliver(in_flight_.front().sent.to);
  EXPECT_NEAR(numerators(), before, 1e-5 * before);
}

}  // namespace
}  // namespace starling::core
