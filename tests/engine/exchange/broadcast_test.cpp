/// Tests the broadcast exchange message by message: when an update counts, what happens to the last
/// update of a dead worker, and how a worker that joins gets its copy.
#include "starling/engine/exchange/broadcast/broadcast.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/engine/exchange/exchange_harness.hpp"

namespace starling::core {
namespace {

class BroadcastTest : public ExchangeHarness<BroadcastExchange> {
 protected:
  /// Returns the number of last updates that a member gives away with its copy of the first range.
  std::size_t last_updates_of(MemberId id) {
    run(id, [](auto& e, const auto& c) { (void)e.on(c, 1, CopyRequest{0}); });
    const InFlight reply = in_flight_.back();
    in_flight_.pop_back();
    return std::get<CopyReply>(reply.sent.message).copy->last.size();
  }
};

TEST_F(BroadcastTest, UpdateCountsOnceAllCopiesContainIt) {
  write(0, 1);
  EXPECT_EQ(sum(0), 1) << "its own copy contains it at once";
  deliver(1);
  deliver(0);
  EXPECT_EQ(written_[0], 0) << "worker 2 lacks it";
  deliver(2);
  deliver(0);
  EXPECT_EQ(written_[0], 1);
  EXPECT_EQ(sum(1), 1);
  EXPECT_EQ(sum(2), 1);
  read(2, 0);
  EXPECT_EQ(reads_[2], 1);
}

TEST_F(BroadcastTest, LastUpdateOfADeadWorkerReachesAll) {
  write(0, 1);
  deliver(1);
  drop_messages_of(0);  // worker 2 does not get the update
  remove(0);
  adopt(1);
  deliver(2);
  EXPECT_EQ(sum(2), 1) << "worker 1 has passed it on";
  adopt(2);
  deliver(1);
  EXPECT_EQ(sum(1), 1) << "and has it only once";
  EXPECT_EQ(exchange(1).answerer("broadcast", configuration_, 0), 1U);
  EXPECT_TRUE(exchange(1).answers_for(0));
  EXPECT_FALSE(exchange(2).answers_for(0));
}

TEST_F(BroadcastTest, LastUpdateOfADeadWorkerReachesAJoinerWhoseCopyLacksIt) {
  write(0, 1);
  deliver(1);
  drop_messages_of(0);
  remove(0);
  adopt(1);  // worker 1 sends the update to worker 2, where it does not arrive for now
  adopt(2);
  auto late = std::exchange(in_flight_, {});
  add(3);
  for (MemberId id = 1; id < 4; ++id) adopt(id);
  run(3, [](auto& e, const auto& c) { (void)e.on(c, 1, CopyReply{0, nullptr}); });
  deliver(2);
  deliver(3);
  EXPECT_EQ(sum(3), 1) << "worker 2 has given its copy, and worker 1 the update";
  in_flight_.insert(in_flight_.end(), late.begin(), late.end());
  deliver(2);
  EXPECT_EQ(sum(2), 1);
}

TEST_F(BroadcastTest, JoinerPassesOnAnUpdateThatItsCopyContains) {
  write(0, 1);
  deliver(1);  // worker 2 does not get the update
  drop_messages_of(0);
  add(3);
  for (const MemberId id : {1U, 2U, 3U}) adopt(id);
  run(3, [](auto& e, const auto& c) { (void)e.on(c, 0, CopyReply{0, nullptr}); });
  deliver(1);
  deliver(3);
  ASSERT_EQ(sum(3), 1) << "the copy of worker 1";
  drop_messages_of(1);
  remove(0);
  remove(1);
  adopt(3);
  adopt(2);
  deliver(2);
  EXPECT_EQ(sum(2), 1);
}

TEST_F(BroadcastTest, PassesOnNoMoreSharesAtATimeThanTheWindowAllows) {
  window_ = 2;
  start(5);
  write(0, 1);
  for (const MemberId id : {1U, 2U, 0U}) deliver(id);  // now sends the next two ranges
  deliver(1);
  drop_messages_of(0);  // worker 2 has ranges 0 and 1, worker 1 has 2 and 3 too
  remove(0);
  for (const MemberId id : {1U, 2U}) adopt(id);
  write(1, 1);
  for (int i = 0; i < 10; ++i)
    for (const MemberId id : {1U, 2U}) {
      EXPECT_LE(in_flight<Share>(1, 2), 2);
      EXPECT_LE(in_flight<Share>(2, 1), 2);
      deliver(id);
    }
  EXPECT_EQ(in_flight<Share>(1, 2) + in_flight<Share>(2, 1), 0);
  EXPECT_EQ(written_[1], 1);
  for (const MemberId id : {1U, 2U})
    for (RangeId range = 0; range < 5; ++range)
      EXPECT_EQ(sum(id, range), range < 4 ? 2 : 1) << "worker " << id << ", range " << range;
}

TEST_F(BroadcastTest, KeepsLastUpdatesOnlyIfWorkersMayDie) {
  write(0, 1);
  EXPECT_EQ(last_updates_of(0), 1U);
  configuration_.council.clear();
  start(1);
  write(0, 1);
  EXPECT_EQ(last_updates_of(0), 0U) << "all members are in one process";
}

TEST_F(BroadcastTest, NamesTheRangesOfWhichItHasACopy) {
  EXPECT_EQ(exchange(1).full_ranges(), std::vector<RangeId>{0});
  add(3);
  for (MemberId id = 0; id < 4; ++id) adopt(id);
  EXPECT_TRUE(exchange(3).full_ranges().empty());
  const std::uint64_t before = exchange(3).full_ranges_version();
  deliver(0);
  deliver(3);
  EXPECT_EQ(exchange(3).full_ranges(), std::vector<RangeId>{0});
  EXPECT_GT(exchange(3).full_ranges_version(), before);
}

/// Parts of a checkpoint may contain different steps of a worker, which begins at the lowest one.
/// So it may repeat a step that this part contains.
TEST_F(BroadcastTest, StepThatACheckpointContainsIsNotAppliedAgain) {
  initial_ledger_ = {{.incarnation = 1, .step = 2, .samples = 2}, {}, {.samples = 7}};
  start(1);
  for (const Step step : {2U, 3U}) {
    write(0, step);
    for (const MemberId id : {1U, 2U, 0U}) deliver(id);
    EXPECT_EQ(written_[0], static_cast<int>(step) - 1);
    for (MemberId id = 0; id < 3; ++id) EXPECT_EQ(sum(id), step - 2) << id;
  }
  const std::vector<LedgerEntry> ledger = exchange(2).state(0).ledger;
  ASSERT_EQ(ledger.size(), 3U) << "one entry for each worker, also for one without a step";
  EXPECT_EQ(ledger[0].step, 3U);
  EXPECT_EQ(ledger[2].samples, 7U);
}

TEST_F(BroadcastTest, UpdateThatAwaitsADeadWorkerCounts) {
  write(0, 1);
  deliver(1);
  deliver(0);
  remove(2);
  adopt(0);
  EXPECT_EQ(written_[0], 1);
}

TEST_F(BroadcastTest, JoinerHoldsUpUpdatesUntilItHasACopy) {
  write(1, 1);
  deliver(0);
  deliver(2);
  deliver(1);
  ASSERT_EQ(written_[1], 1);
  add(3);
  adopt(3);
  read(3, 0);
  EXPECT_EQ(reads_.count(3), 0U) << "it has no copy yet";
  for (MemberId id = 0; id < 3; ++id) adopt(id);
  write(2, 1);
  deliver(3);
  for (const InFlight& message : in_flight_)
    EXPECT_FALSE(std::holds_alternative<ShareApplied>(message.sent.message) && message.from == 3)
        << "it cannot apply the update of worker 2 yet";
  deliver(0);
  deliver(1);
  deliver(2);
  EXPECT_EQ(written_[2], 0);
  deliver(3);  // the copy of worker 0
  deliver(2);
  EXPECT_EQ(sum(3), 2);
  EXPECT_EQ(reads_[3], 2);
  EXPECT_EQ(written_[2], 1);
}

TEST_F(BroadcastTest, UpdateInFlightGoesToAJoinerToo) {
  write(0, 1);
  deliver(1);
  add(3);
  for (MemberId id = 0; id < 4; ++id) adopt(id);
  for (int i = 0; i < 3; ++i)
    for (MemberId id = 0; id < 4; ++id) deliver(id);
  EXPECT_EQ(written_[0], 1);
  for (MemberId id = 0; id < 4; ++id) EXPECT_EQ(sum(id), 1) << id;
}

TEST_F(BroadcastTest, JoinerAsksAnotherWorkerIfOneHasNoCopyAndFailsIfNobodyHas) {
  for (MemberId id = 0; id < 3; ++id) remove(id);
  add(4);
  add(5);
  adopt(4);
  adopt(5);
  deliver(5);
  deliver(4);
  EXPECT_EQ(failure_, "");
  while (failure_.empty() && time_ < std::chrono::minutes{1}) {
    ASSERT_GT(timer_at_, time_);
    time_ = timer_at_;
    run(4, [](auto& e, const auto& c) { e.on_timer(c); });
    deliver(5);
    deliver(4);
  }
  EXPECT_EQ(failure_, "no worker has a copy of the parameters; valid: start from a checkpoint");
}

TEST_F(BroadcastTest, RefusesMessagesThatNoCorrectMemberSends) {
  const ExchangeScope scope{{configuration_, 1, 16}, *layout_, sizeof(double)};
  const Share share{{1, 1}, 0, 1, 1, 1, {Buffer::zeros(1, sizeof(double)), 0, 1, nullptr}, 3};
  EXPECT_TRUE(is_valid(scope, share));
  Share foreign = share;
  foreign.worker = {2, 1};
  EXPECT_FALSE(is_valid(scope, foreign)) << "worker 2 sends its own";
  foreign.worker = {7, 1};
  EXPECT_FALSE(is_valid(scope, foreign)) << "was never a member";
  Share elsewhere = share;
  elsewhere.range = 1;
  EXPECT_FALSE(is_valid(scope, elsewhere));
  Share large = share;
  large.update.count = 2;
  EXPECT_FALSE(is_valid(scope, large));
  Share empty = share;
  for (const Rows& rows : {Rows{}, std::make_shared<const std::vector<std::uint32_t>>()}) {
    empty.update = {share.update.buffer, 0, 0, rows};
    EXPECT_FALSE(is_valid(scope, empty)) << "worker 1 sends no share of a range it did not change";
  }
  for (const std::uint32_t workers : {0U, 17U}) {
    Share unweighed = share;
    unweighed.workers = workers;
    EXPECT_FALSE(is_valid(scope, unweighed));
  }
  EXPECT_TRUE(is_valid(scope, CopyReply{0, nullptr}));
  EXPECT_FALSE(is_valid(scope, CopyReply{1, nullptr}));
  RangeCopy copy{
      .state = exchange(0).state(0), .progress = {{{3, 1}, 1, 1}, {{2, 1}, 1, 1}}, .last = {}};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}))
      << "the progress must ascend";
  copy.progress = {{{16, 1}, 1, 1}};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}))
      << "no member has this id";
  copy.progress.clear();
  copy.last = {share};
  EXPECT_TRUE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
  copy.last = {elsewhere};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
  copy.last = {large};
  EXPECT_FALSE(is_valid(scope, CopyReply{0, std::make_shared<const RangeCopy>(copy)}));
}

}  // namespace
}  // namespace starling::core
