/// Tests the gossip exchange message by message: that no weight is lost or made, that copies tend
/// to the mean, and what happens when workers join, end and die.
#include "starling/engine/exchange/gossip/gossip.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/exchange_harness.hpp"

namespace starling::core {
namespace {

class GossipTest : public ExchangeHarness<GossipExchange> {
 protected:
  /// Updates are gradients: each moves the element by 1 if the worker's weight is 1.
  GossipTest() {
    applier_ =
        gradient_applier<double>({.optimizer = models::Sgd{.lr = -1}, .schedule = {}, .batch = 1});
    start(1, 3);
  }

  [[nodiscard]] double initial_of(MemberId id) const override { return differs_at_first_ ? id : 0; }
  double weight(MemberId id, RangeId range = 0) { return exchange(id).weight(range); }
  /// Returns the sums of all weights, and of all values times their weights, in flight included.
  std::pair<double, double> sums() {
    double weights = 0;
    double values = 0;
    for (const Member& member : configuration_.members) {
      if (!exchange(member.id).has_copy(0)) continue;
      weights += weight(member.id);
      values += weight(member.id) * sum(member.id);
    }
    for (const InFlight& message : in_flight_)
      if (const auto* sent = std::get_if<PushSum>(&message.sent.message)) {
        weights += sent->weight;
        values += sent->weight * sent->value.as<double>()[0];
      }
    return {weights, values};
  }
  void deliver_all() {
    while (!in_flight_.empty()) deliver(in_flight_.front().sent.to);
  }
  void end(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.end(c, {step}); });
  }
  /// Writes the step without an update.
  void write_nothing(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.write(c, {step, {}, step}); });
  }

  bool differs_at_first_ = false;
};

TEST_F(GossipTest, SendsHalfOfItsWeightToOneOther) {
  write(0, 1);
  EXPECT_EQ(sum(0), 1) << "its own copy contains the update at once";
  EXPECT_EQ(weight(0), 0.5);
  EXPECT_EQ(in_flight<PushSum>(0, 1) + in_flight<PushSum>(0, 2), 1);
  EXPECT_EQ(written_[0], 0);
  deliver_all();
  EXPECT_EQ(written_[0], 1) << "the other one has taken it";
  EXPECT_EQ(weight(1) + weight(2), 2.5);
  EXPECT_NEAR(sum(1) + sum(2), 1.0 / 3, 1e-12) << "(1 * 0 + 0.5 * 1) / 1.5";
}

TEST_F(GossipTest, SumsChangeByUpdatesOnly) {
  for (const char* name :
       {"gossip", "gossip:ring", "gossip:random", "gossip:lag=1", "gossip:random,lag=4"}) {
    SCOPED_TRACE(name);
    name_ = name;
    written_.clear();
    start(1, 5);
    std::map<MemberId, Step> steps;
    double updates = 0;
    for (int event = 0; event < 2000; ++event) {
      const auto id = static_cast<MemberId>(random_.below(5));
      if (steps[id] == static_cast<Step>(written_[id])) {
        write(id, ++steps[id]);
        ++updates;
      } else if (!in_flight_.empty()) {
        const auto at = static_cast<std::ptrdiff_t>(random_.below(in_flight_.size()));
        const InFlight message = in_flight_[static_cast<std::size_t>(at)];
        in_flight_.erase(in_flight_.begin() + at);
        deliver(message);
      }
      const auto [weights, values] = sums();
      ASSERT_NEAR(weights, 5, 1e-9);
      ASSERT_NEAR(values, updates, 1e-6);
    }
    EXPECT_GT(updates, 200);
    written_.clear();
  }
}

TEST_F(GossipTest, ExponentialGraphAveragesExactlyInLog2Steps) {
  differs_at_first_ = true;
  start(1, 8);
  for (Step step = 1; step <= 3; ++step) {
    for (MemberId id = 0; id < 8; ++id) write_nothing(id, step);
    deliver_all();
  }
  for (MemberId id = 0; id < 8; ++id) {
    EXPECT_EQ(weight(id), 1);
    EXPECT_EQ(sum(id), 3.5);
  }
}

/// Workers that make different numbers of steps have different weights: w z differs, and z does
/// not.
TEST_F(GossipTest, CopiesTendToTheMeanOnEveryGraph) {
  differs_at_first_ = true;
  for (const char* name :
       {"gossip", "gossip:ring", "gossip:random", "gossip:lag=1", "gossip:random,lag=4"}) {
    SCOPED_TRACE(name);
    name_ = name;
    written_.clear();
    start(1, 5);
    std::map<MemberId, Step> steps;
    for (int round = 0; round < 400; ++round)
      for (MemberId id = 0; id < 5; ++id) {
        if (id == 0 && round % 3 > 0) continue;
        write_nothing(id, ++steps[id]);
        deliver_all();
      }
    std::set<double> weights;
    for (MemberId id = 0; id < 5; ++id) {
      EXPECT_NEAR(sum(id), 2, 1e-6);
      weights.insert(weight(id));
    }
    EXPECT_GT(*weights.rbegin() - *weights.begin(), 0.1);
  }
}

/// Nothing that the other workers send arrives, so that the worker's weight would become 0.
TEST_F(GossipTest, UpdatesOfAWorkerThatIsAheadCountTwiceAtMost) {
  for (Step step = 1; step <= 10; ++step) {
    const double before = sum(0);
    write(0, step);
    EXPECT_LE(sum(0) - before, 1 / GossipExchange::first_weight_min);
    std::erase_if(in_flight_, [](const InFlight& message) {
      return std::holds_alternative<PushSum>(message.sent.message);
    });
    run(0, [&](auto& e, const auto& c) { (void)e.on(c, 1, GossipReceived{step}); });
    run(0, [&](auto& e, const auto& c) { (void)e.on(c, 2, GossipReceived{step}); });
    deliver_all();
    EXPECT_GE(weight(0), GossipExchange::first_weight_min);
  }
  EXPECT_EQ(weight(0), GossipExchange::first_weight_min);
  EXPECT_EQ(written_[0], 10);
}

TEST_F(GossipTest, WorkerThatHasEndedHandsItsWeightToTheFirst) {
  end(1, 4);
  deliver_all();
  EXPECT_EQ(weight(0), 2);
  EXPECT_EQ(weight(1), 0);
  EXPECT_TRUE(exchange(1).has_copy(0)) << "in case the first one dies";
  for (Step step = 1; step <= 8; ++step) {
    write_nothing(2, step);
    EXPECT_EQ(in_flight<PushSum>(2, 1), 0) << "nobody sends to it any more";
    deliver_all();
  }
  end(0, 8);
  end(2, 8);
  deliver_all();
  EXPECT_EQ(weight(0), 3);
}

/// The dead one has had most of the weight.
TEST_F(GossipTest, WorkersGoOnMixingIfWeightIsLost) {
  for (Step step = 1; step <= 6; ++step)
    for (const MemberId id : {0U, 1U}) {
      write_nothing(id, step);
      for (InFlight& message : std::exchange(in_flight_, {}))
        if (message.sent.to == 2 || message.from == 2 ||
            !std::holds_alternative<PushSum>(message.sent.message))
          deliver(message);
        else
          run(message.from, [&](auto& e, const auto& c) {
            (void)e.on(c, message.sent.to, GossipReceived{step});
          });
      deliver_all();
    }
  remove(2);
  adopt(0);
  adopt(1);
  const double before = weight(0);
  write_nothing(0, 7);
  EXPECT_LT(weight(0), before) << "it sends";
  deliver_all();
}

TEST_F(GossipTest, WorkerThatHasEndedPassesOnWhatItLearns) {
  name_ = "gossip:ring";
  start(1, 3);
  end(1, 0);
  deliver_all();
  EXPECT_TRUE(exchange(1).may_leave());
  run(1, [&](auto& e, const auto& c) { (void)e.on(c, 2, KnownProgress{5, {{{2, 1}, 5, 50}}}); });
  EXPECT_FALSE(exchange(1).may_leave());
  deliver_all();
  EXPECT_TRUE(exchange(1).may_leave());
  const auto known = exchange(0).progress();
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].samples, 50U);
}

TEST_F(GossipTest, WeightThatComesAfterTheEndIsHandedOnToo) {
  name_ = "gossip:ring";
  start(1, 3);
  write(1, 1);
  end(2, 1);
  EXPECT_EQ(in_flight<PushSum>(1, 2), 1);
  deliver_all();
  EXPECT_EQ(weight(2), 0);
  EXPECT_EQ(weight(0) + weight(1), 3);
}

TEST_F(GossipTest, WorkerThatIsAloneSendsNothing) {
  start(1, 1);
  write(0, 1);
  EXPECT_TRUE(in_flight_.empty());
  EXPECT_EQ(written_[0], 1);
  EXPECT_EQ(weight(0), 1);
  EXPECT_EQ(sum(0), 1);
}

TEST_F(GossipTest, JoinerCopiesTheModelAndBringsAWeightOfOne) {
  write(0, 1);
  deliver_all();
  add(3);
  for (const MemberId id : {0U, 1U, 2U}) adopt(id);
  // A message that comes before the copy waits.
  name_ = "gossip:ring";
  run(2, [&](auto&, const auto& c) {
    auto half = Buffer::make<double>(1);
    half->as<double>()[0] = 7;
    c.send(3, PushSum{0, 1, 0.5, {std::move(half), 0, 1, nullptr}});
  });
  deliver(3);
  epochs_[3] = 0;
  adopt(3);
  read(3, 0);
  EXPECT_FALSE(exchange(3).has_copy(0));
  EXPECT_EQ(reads_.count(3), 0U);
  EXPECT_EQ(in_flight<ModelRequest>(3, 0), 1);
  deliver_all();
  EXPECT_EQ(weight(3), 1.5);
  EXPECT_NEAR(sum(3), (1 + 0.5 * 7) / 1.5, 1e-12);
  EXPECT_EQ(in_flight_.size(), 0U);
  EXPECT_EQ(reads_.count(3), 1U);
  const auto progress = exchange(3).progress();
  ASSERT_EQ(progress.size(), 1U);
  EXPECT_EQ(progress[0].step, 1U) << "it knows how far worker 0 has got";
}

TEST_F(GossipTest, DeathOfTheOtherEndsTheWrite) {
  window_ = 1;
  name_ = "gossip:ring";
  start(2, 3);
  write(0, 1);
  EXPECT_EQ(in_flight<KnownProgress>(0, 1), 1);
  EXPECT_EQ(in_flight<PushSum>(0, 1), 0) << "the window is full";
  drop_messages_of(0);
  remove(1);
  adopt(0);
  EXPECT_EQ(written_[0], 1);
  EXPECT_EQ(weight(0, 0), 1) << "what was not sent stays";
  EXPECT_EQ(weight(0, 1), 1);
}

TEST_F(GossipTest, WithALagAStepCountsWhileItsMessagesTravel) {
  name_ = "gossip:ring,lag=1";
  start(2, 3);
  write(0, 1);
  EXPECT_EQ(written_[0], 1);
  EXPECT_EQ(weight(0), 0.5);
  write(0, 2);
  EXPECT_EQ(written_[0], 1) << "worker 1 has not taken what it was sent in step 1";
  deliver_all();
  EXPECT_EQ(written_[0], 2);
}

TEST_F(GossipTest, WithALagNoMessageIsOlderThanTheLag) {
  name_ = "gossip:lag=1";  // the targets of steps 1 and 2 differ
  start(1, 3);
  write(0, 1);
  const std::vector<InFlight> untaken = std::exchange(in_flight_, {});
  write(0, 2);
  deliver_all();
  EXPECT_EQ(written_[0], 1) << "the message of step 1 is not taken";
  in_flight_ = untaken;
  deliver_all();
  EXPECT_EQ(written_[0], 2);
}

TEST_F(GossipTest, WorkerWithALagHandsOverOnceItsLastMessagesAreTaken) {
  name_ = "gossip:ring,lag=2";
  window_ = 2;
  start(3, 3);
  write(1, 1);
  write(1, 2);
  EXPECT_EQ(written_[1], 2);
  end(1, 2);
  EXPECT_FALSE(exchange(1).may_leave());
  deliver_all();
  EXPECT_TRUE(exchange(1).may_leave());
  EXPECT_EQ(weight(1), 0);
  for (RangeId r = 0; r < 3; ++r) EXPECT_NEAR(weight(0, r) + weight(2, r), 3, 1e-12);
}

TEST_F(GossipTest, DeathOfTheOtherEndsAllThatItWasSent) {
  name_ = "gossip:ring,lag=1";
  start(2, 3);
  write(0, 1);
  write(0, 2);
  drop_messages_of(0);
  remove(1);
  adopt(0);
  EXPECT_EQ(written_[0], 2);
  EXPECT_FALSE(exchange(0).is_sending());
}

TEST_F(GossipTest, StepThatACheckpointContainsIsNotAppliedAgain) {
  initial_ledger_ = {{.incarnation = 1, .step = 5, .samples = 5}};
  start(1);
  write(0, 5);
  EXPECT_EQ(sum(0), 0);
  deliver_all();
  write(0, 6);
  EXPECT_GT(sum(0), 0);
}

TEST_F(GossipTest, RefusesMessagesThatNoCorrectMemberSends) {
  const ExchangeScope scope{{configuration_, 1, 8}, *layout_, sizeof(double)};
  auto buffer = Buffer::make<double>(1);
  buffer->as<double>()[0] = 1;
  const PushSum sent{0, 1, 0.5, {std::move(buffer), 0, 1, nullptr}};
  EXPECT_TRUE(is_valid(scope, sent));
  const auto refused = [&](auto change) {
    PushSum bad = sent;
    change(bad);
    return !is_valid(scope, bad);
  };
  EXPECT_TRUE(refused([](PushSum& m) { m.weight = 0; }));
  EXPECT_TRUE(refused([](PushSum& m) { m.weight = -1; }));
  EXPECT_TRUE(refused([](PushSum& m) { m.weight = std::nan(""); }));
  EXPECT_TRUE(refused([](PushSum& m) { m.weight = 9; }));
  EXPECT_TRUE(refused([](PushSum& m) { m.range = 1; }));
  EXPECT_TRUE(refused([](PushSum& m) { m.step = barrier::finished; }));
  EXPECT_TRUE(refused([](PushSum& m) { m.value = {}; }));
  EXPECT_TRUE(is_valid(scope, KnownProgress{1, {{{0, 1}, 1, 1}, {{2, 1}, 1, 1}}}));
  EXPECT_FALSE(is_valid(scope, KnownProgress{1, {{{2, 1}, 1, 1}, {{0, 1}, 1, 1}}}));
  EXPECT_FALSE(is_valid(scope, KnownProgress{1, {{{8, 1}, 1, 1}}}));
  EXPECT_FALSE(is_valid(scope, ModelRequest{1}));
  EXPECT_FALSE(is_valid(scope, ModelReply{1, nullptr}));
}

TEST_F(GossipTest, OnlyRangesThatLackAStepInACheckpointGetIt) {
  initial_ledger_ = {{.incarnation = 1, .step = 4, .samples = 4}};
  first_ledger_ = {{.incarnation = 1, .step = 5, .samples = 5}};
  start(2);
  write(0, 5);
  EXPECT_EQ(sum(0, 0), 0);
  EXPECT_GT(sum(0, 1), 0);
}

}  // namespace
}  // namespace starling::core
