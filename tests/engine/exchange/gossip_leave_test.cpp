/// Tests that workers of the gossip exchange whose members leave hand over all that they have to
/// one that stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/exchange/gossip/gossip.hpp"
#include "tests/engine/exchange/exchange_harness.hpp"

namespace starling::core {
namespace {

class GossipLeaveTest : public ExchangeHarness<GossipExchange> {
 protected:
  GossipLeaveTest() { start(1, 4); }

  double weight(MemberId id) { return exchange(id).weight(0); }
  void end(MemberId id) {
    run(id, [](auto& e, const auto& c) { e.end(c, {1}); });
  }
  void leave(MemberId id) {
    run(id, [](auto& e, const auto& c) { e.leave(c); });
  }
  /// Delivers a random message. Messages of a traffic class arrive in order. Tensors of worker 0
  /// are slow: they arrive when nothing else is in flight.
  void deliver_one_of_class() {
    if (in_flight_.empty()) return;
    const auto class_of = [](const InFlight& message) {
      return std::tuple{message.from, message.sent.to,
                        std::holds_alternative<PushSum>(message.sent.message)};
    };
    const auto slow = std::ranges::stable_partition(in_flight_, [](const InFlight& message) {
      return message.from != 0 || !std::holds_alternative<PushSum>(message.sent.message);
    });
    const std::size_t fast_count = in_flight_.size() - slow.size();
    const std::size_t drawn = fast_count > 0 ? random_.below(fast_count) : 0;
    const auto first = std::ranges::find(in_flight_, class_of(in_flight_[drawn]), class_of);
    const InFlight message = *first;
    in_flight_.erase(first);
    deliver(message);
  }
  void deliver_all() {
    for (int count = 0; !in_flight_.empty(); ++count) {
      ASSERT_LT(count, 10'000) << "weight goes round in circles";
      deliver_one_in_order();
    }
  }
};

TEST_F(GossipLeaveTest, WorkersOfOneNodeHandOverToOneThatStays) {
  for (const MemberId id : {0U, 1U}) {
    leave(id);
    end(id);
  }
  EXPECT_FALSE(exchange(0).may_leave());
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_TRUE(exchange(id).may_leave());
    EXPECT_EQ(weight(id), 0);
  }
  EXPECT_EQ(weight(2), 3);
  EXPECT_EQ(weight(3), 1);
}

/// The first worker answers for the model, so all others have handed over to it.
TEST_F(GossipLeaveTest, TheFirstWorkerHandsOverToTheNextIfAllHaveEnded) {
  for (const MemberId id : {1U, 2U, 3U, 0U}) end(id);
  deliver_all();
  EXPECT_EQ(weight(0), 4);
  EXPECT_TRUE(exchange(0).may_leave()) << "the job has ended";
  leave(0);
  EXPECT_FALSE(exchange(0).may_leave());
  deliver_all();
  EXPECT_TRUE(exchange(0).may_leave());
  EXPECT_EQ(weight(1), 4);
  remove(0);
  for (const MemberId id : {1U, 2U, 3U}) adopt(id);
  deliver_all();
  EXPECT_EQ(weight(1), 4);
  EXPECT_TRUE(exchange(1).answers_for(0));
}

/// A job ends once each worker has been done at some time, although a message may give a worker new
/// weight after that. On nodes, messages without tensors overtake others.
TEST_F(GossipLeaveTest, TheFirstWorkerHasAllWeightOnceEachHasBeenDone) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    random_ = Random{seed};
    name_ = seed % 2 == 0 ? "gossip:ring" : "gossip:lag=1";
    start(3, 3);
    written_.clear();
    int writes[3] = {};
    bool has_ended[3] = {};
    std::set<MemberId> done;
    for (int event = 0; done.size() < 3; ++event) {
      ASSERT_LT(event, 10'000);
      const auto id = static_cast<MemberId>(random_.below(3));
      const bool is_idle = !has_ended[id] && written_[id] == writes[id];
      if (is_idle && writes[id] == 3)
        end(id), has_ended[id] = true;
      else if (is_idle && random_.below(4) == 0)
        write(id, static_cast<Step>(++writes[id]));
      else
        deliver_one_of_class();
      for (MemberId w = 0; w < 3; ++w)
        if (has_ended[w] && exchange(w).may_leave()) done.insert(w);
    }
    for (RangeId range = 0; range < 3; ++range) EXPECT_NEAR(exchange(0).weight(range), 3, 1e-12);
  }
}

TEST_F(GossipLeaveTest, NobodyWaitsIfAllLeave) {
  for (const MemberId id : {0U, 1U, 2U, 3U}) {
    leave(id);
    end(id);
  }
  deliver_all();
  for (const MemberId id : {0U, 1U, 2U, 3U}) EXPECT_TRUE(exchange(id).may_leave());
}

/// Up to five of six workers leave, before or after their last step, while others write and end.
TEST_F(GossipLeaveTest, NoWeightIsLostInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    random_ = Random{seed};
    start(1, 6);
    const auto stays = static_cast<MemberId>(random_.below(6));
    bool has_ended[6] = {};
    int writes[6] = {};
    written_.clear();
    for (int event = 0; event < 100; ++event) {
      const auto id = static_cast<MemberId>(random_.below(6));
      const std::uint64_t kind = random_.below(8);
      if (kind == 0 && id != stays)
        leave(id);
      else if (kind == 1 && !has_ended[id])
        end(id), has_ended[id] = true;
      else if (kind == 2 && !has_ended[id] && written_[id] == writes[id])
        write(id, static_cast<Step>(++writes[id]));
      else if (!in_flight_.empty())
        deliver_one_in_order();
    }
    for (MemberId id = 0; id < 6; ++id)
      if (!has_ended[id]) end(id);
    for (MemberId id = 0; id < 6; ++id)
      if (id != stays) leave(id);
    deliver_all();
    EXPECT_NEAR(weight(stays), 6, 1e-12);
    for (MemberId id = 0; id < 6; ++id) EXPECT_TRUE(exchange(id).may_leave()) << id;
    for (MemberId id = 0; id < 6; ++id)
      if (id != stays) remove(id);
    adopt(stays);
    deliver_all();
    EXPECT_NEAR(weight(stays), 6, 1e-12);
    EXPECT_TRUE(exchange(stays).answers_for(0));
  }
}

/// Workers join and leave by turns, and the others go on: the mean weight stays 1, because an
/// update moves the mean of the copies by its inverse.
TEST_F(GossipLeaveTest, LeaversDoNotRaiseTheMeanWeight) {
  for (MemberId joiner = 4; joiner < 24; ++joiner) {
    const MemberId leaver = configuration_.members[1].id;
    leave(leaver);
    end(leaver);
    deliver_all();
    EXPECT_TRUE(exchange(leaver).may_leave());
    remove(leaver);
    add(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver_all();
    double weights = 0;
    for (const Member& member : configuration_.members) weights += weight(member.id);
    EXPECT_NEAR(weights, 4, 1e-9);
  }
}

/// A worker to which nobody sends keeps a quarter of the mean weight while others leave, which hand
/// theirs over.
TEST_F(GossipLeaveTest, LeaversDoNotLowerTheLeastWeight) {
  start(1, 8);
  Step step = 0;
  for (const MemberId leaver : {7U, 6U, 5U, 4U, 2U, 1U}) {
    for (int i = 0; i < 20; ++i) {
      write(3, ++step);
      deliver_all();
    }
    leave(leaver);
    end(leaver);
    deliver_all();
    remove(leaver);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver_all();
  }
  EXPECT_GE(weight(3), 0.25);
}

/// A worker that leaves before it has a copy had no weight.
TEST_F(GossipLeaveTest, JoinersWithoutACopyTakeNoWeightAlong) {
  start(1, 2);
  for (MemberId joiner = 2; joiner < 12; ++joiner) {
    add(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    in_flight_.clear();  // its copy is still in transfer
    leave(joiner);
    end(joiner);
    deliver_all();
    remove(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver_all();
    EXPECT_EQ(weight(0) + weight(1), 2);
  }
}

TEST_F(GossipLeaveTest, JoinersWhoseCopyComesAfterTheirEndTakeNoWeightAlong) {
  start(1, 2);
  for (MemberId joiner = 2; joiner < 12; ++joiner) {
    add(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    leave(joiner);
    end(joiner);
    deliver_all();  // its copy too
    remove(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver_all();
    EXPECT_EQ(weight(0) + weight(1), 2);
  }
}

/// The weight that others have sent to a worker that has no copy yet goes to one that stays.
TEST_F(GossipLeaveTest, JoinersWithoutACopyPassOnWhatTheyWereSent) {
  name_ = "gossip:ring";
  start(1, 2);
  add(2);
  for (const Member& member : configuration_.members) adopt(member.id);
  const auto request_of_copy = std::exchange(in_flight_, {});
  write(1, 1);  // sends to worker 2
  deliver(2);
  leave(2);
  end(2);
  deliver_all();
  EXPECT_FALSE(exchange(2).may_leave());
  in_flight_ = request_of_copy;
  deliver_all();
  EXPECT_TRUE(exchange(2).may_leave());
  remove(2);
  for (const Member& member : configuration_.members) adopt(member.id);
  deliver_all();
  EXPECT_EQ(weight(0) + weight(1), 2);
  EXPECT_EQ(written_[1], 1);
}

TEST_F(GossipLeaveTest, JoinersWithAPartOfACopyTakeNoWeightAlong) {
  start(2, 2);
  for (MemberId joiner = 2; joiner < 12; ++joiner) {
    add(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver(0);
    deliver(joiner);
    ASSERT_TRUE(exchange(joiner).has_copy(0));
    ASSERT_FALSE(exchange(joiner).has_copy(1));
    leave(joiner);
    end(joiner);
    deliver_all();
    EXPECT_TRUE(exchange(joiner).may_leave());
    remove(joiner);
    for (const Member& member : configuration_.members) adopt(member.id);
    deliver_all();
  }
  for (RangeId range = 0; range < 2; ++range)
    EXPECT_EQ(exchange(0).weight(range) + exchange(1).weight(range), 2) << range;
}

TEST_F(GossipLeaveTest, OthersGoOnSendingIfAWorkerDiesBeforeItHasHandedOver) {
  for (Step step = 1; step <= 40; ++step)
    for (const MemberId id : {0U, 1U, 2U}) {
      write(id, step);
      deliver_all();
    }
  ASSERT_GT(weight(3), 2) << "it has made no step, and so has kept what it got";
  leave(3);
  end(3);
  std::erase_if(in_flight_, [](const InFlight& message) {
    return message.from == 3 && !std::holds_alternative<Ended>(message.sent.message);
  });
  deliver_all();
  remove(3);
  for (const Member& member : configuration_.members) adopt(member.id);
  deliver_all();
  for (Step step = 41; step <= 80; ++step)
    for (const MemberId id : {0U, 1U, 2U}) {
      write(id, step);
      const auto sent = std::ranges::count_if(in_flight_, [](const InFlight& message) {
        return std::holds_alternative<PushSum>(message.sent.message);
      });
      EXPECT_EQ(sent, 1) << id << " at " << step;
      deliver_all();
    }
}

}  // namespace
}  // namespace starling::core
