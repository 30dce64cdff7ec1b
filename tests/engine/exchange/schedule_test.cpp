/// Learning-rate schedules under exchanges in which every worker has a copy of its own.
#include <gtest/gtest.h>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

/// From the eighth sample of all workers on, the rate is a hundredth.
ApplierPtr falling_rate() {
  return gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1},
       .schedule = models::parse_schedule("step:every=8,gamma=0.01").value(),
       .batch = 1});
}

class GossipSchedule : public ExchangeHarness<GossipExchange> {};
TEST_F(GossipSchedule, GoesByTheSamplesOfAllThatTheWorkerKnows) {
  applier_ = falling_rate();
  name_ = "gossip:ring";
  start(1, 2);
  for (Step step = 1; step <= 3; ++step) {
    for (const MemberId id : {0U, 1U}) {
      write(id, step);
      while (!in_flight_.empty()) deliver(in_flight_.front().sent.to);
    }
  }
  write(0, 4);  // the seventh sample
  while (!in_flight_.empty()) deliver(in_flight_.front().sent.to);
  const double before = sum(1);
  const double weight = exchange(1).weight(0);
  write(1, 4);
  EXPECT_NEAR(sum(1), before - 0.01 / weight, 1e-12);
}

class AverageSchedule : public RoundsHarness<AverageExchange> {};
TEST_F(AverageSchedule, AssumesThatOthersGoOn) {
  applier_ = falling_rate();
  name_ = "average:every=8";
  start(1, 2);
  for (Step step = 1; step <= 4; ++step) write(0, step, 1);
  EXPECT_EQ(sum(0), -4) << "the steps of 0, 2, 4 and 6 samples of both";
  write(0, 5, 1);
  EXPECT_NEAR(sum(0), -4.01, 1e-12) << "8 samples with those that the other has made";
}

class LeaderSchedule : public ExchangeHarness<LeaderExchange> {};
TEST_F(LeaderSchedule, CountsTheSamplesOfACheckpointOnce) {
  applier_ = falling_rate();
  name_ = "leader:every=8,group=2";
  initial_ledger_ = {{.incarnation = 1, .step = 2, .samples = 2},
                     {.incarnation = 1, .step = 2, .samples = 2}};
  start(1, 2);
  run(0, [&](auto& e, const auto& c) {
    auto one = Buffer::make<double>(1);
    one->template as<double>()[0] = 1;
    Update update{.parts = {}, .samples = 1, .loss = 0};
    update.parts.push_back({0, {std::move(one), 0, 1, nullptr}});
    e.write(c, {3, std::move(update), 3});
  });
  EXPECT_EQ(sum(0), -1) << "4 samples before the step, and 2 in it";
}

}  // namespace
}  // namespace starling::core
