/// Tests buckets, and the sums of parts of updates that come early.
#include "starling/engine/exchange/buckets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/exchange/allreduce/bucketed_sum.hpp"
#include "tests/engine/exchange/rounds_harness.hpp"

namespace starling::core {
namespace {

Layout layout_of(const std::vector<std::size_t>& sizes) {
  Layout layout;
  for (const std::size_t size : sizes) {
    layout.ranges.push_back({layout.size, size, 0, {}});
    layout.size += size;
  }
  return layout;
}

TEST(Buckets, HoldAllRangesFromTheLastToTheFirst) {
  Random random{1};
  for (int i = 0; i < 300; ++i) {
    std::vector<std::size_t> sizes(1 + random.below(20));
    for (std::size_t& size : sizes) size = 1 + random.below(100);
    const Layout layout = layout_of(sizes);
    for (std::size_t count = 1; count <= 24; ++count) {
      const auto buckets = make_buckets(layout, count);
      ASSERT_EQ(buckets.size(), std::min(count, sizes.size()));
      RangeId end = all_ranges(layout).end;
      for (const Bucket& bucket : buckets) {
        EXPECT_EQ(bucket.end, end);
        EXPECT_LT(bucket.first, bucket.end);
        end = bucket.first;
      }
      EXPECT_EQ(end, 0U);
    }
  }
}

TEST(Buckets, AreOfAboutTheSameSize) {
  const Layout layout = layout_of(std::vector<std::size_t>(100, 10));
  for (const Bucket& bucket : make_buckets(layout, 4)) EXPECT_EQ(bucket.end - bucket.first, 25U);
  EXPECT_EQ(make_buckets(layout_of({1, 1, 1, 97}), 2), (std::vector<Bucket>{{3, 4}, {0, 3}}));
  EXPECT_EQ(make_buckets(layout_of({97, 1, 1, 1}), 2), (std::vector<Bucket>{{1, 4}, {0, 1}}))
      << "the last bucket is the smallest share";
}

TEST(Buckets, AreAtMostEightOfAtLeastAMebibyte) {
  constexpr std::size_t mebi = std::size_t{1} << 20U;
  const auto count = [](std::size_t bytes) {
    return automatic_bucket_count(layout_of({bytes / sizeof(float)}), sizeof(float));
  };
  EXPECT_EQ(count(1000), 1U);
  EXPECT_EQ(count(2 * mebi - 4), 1U);
  EXPECT_EQ(count(2 * mebi), 2U);
  EXPECT_EQ(count(100 * mebi), 8U);
}

TEST(Buckets, AreThoseOfTheExchange) {
  const Layout layout = layout_of(std::vector<std::size_t>(10, std::size_t{1} << 18U));
  EXPECT_EQ(exchange_buckets("allreduce", layout, sizeof(float)).size(), 8U);
  EXPECT_EQ(exchange_buckets("allreduce:ring,buckets=3", layout, sizeof(float)).size(), 3U);
  EXPECT_EQ(exchange_buckets("allreduce:parts,buckets=3", layout, sizeof(float)).size(), 3U);
  EXPECT_TRUE(exchange_buckets("allreduce:parts", layout, sizeof(float)).empty());
  EXPECT_TRUE(exchange_buckets("allreduce:buckets=1", layout, sizeof(float)).empty());
  for (const char* whole : {"allreduce:overlap", "owners", "average:every=4", "gossip"})
    EXPECT_TRUE(exchange_buckets(whole, layout, sizeof(float)).empty()) << whole;
}

/// Six ranges in three buckets: 4 and 5, 2 and 3, 0 and 1.
class EarlyPartsTest : public RoundsHarness<AllreduceExchange> {
 protected:
  EarlyPartsTest() {
    name_ = "allreduce:ring,buckets=3";
    start(6, 2);
  }
  [[nodiscard]] std::size_t count_pieces() const {
    return static_cast<std::size_t>(std::ranges::count_if(in_flight_, [](const InFlight& message) {
      return std::holds_alternative<SumPiece>(message.sent.message);
    }));
  }
};

TEST_F(EarlyPartsTest, AreSummedBeforeTheUpdateIsWhole) {
  write_parts(0, 1, 5, 4);
  EXPECT_GT(count_pieces(), 0U);
  deliver_all();
  write_parts(1, 1, 7, 4);
  deliver_all();
  write_parts(0, 1, 5, 2);
  write_parts(1, 1, 7, 2);
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(written_[id], 0);
    EXPECT_EQ(exchange(id).synced_step(), 0U);
    for (RangeId r = 0; r < 6; ++r) EXPECT_EQ(sum(id, r), 0) << "no round is half applied";
  }
  write(0, 1, 5);
  write(1, 1, 7);
  EXPECT_LE(count_pieces(), 4U) << "of the last bucket only";
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(written_[id], 1);
    EXPECT_EQ(exchange(id).synced_step(), 1U);
    for (RangeId r = 0; r < 6; ++r) EXPECT_EQ(sum(id, r), 12);
  }
}

TEST_F(EarlyPartsTest, OfAnIncompleteBucketWait) {
  write_parts(0, 1, 5, 5);
  EXPECT_EQ(count_pieces(), 0U);
  write_parts(0, 1, 5, 3);
  const std::size_t of_first_bucket = count_pieces();
  EXPECT_GT(of_first_bucket, 0U);
  write_parts(0, 1, 5, 5);
  EXPECT_EQ(count_pieces(), of_first_bucket) << "parts that are computed again";
}

/// Two buckets are in progress at most: the third one waits for worker 1.
TEST_F(EarlyPartsTest, FewBucketsAreInProgressAtATime) {
  write(0, 1, 5);
  EXPECT_EQ(count_pieces(), BucketedSum::in_progress_max) << "a ring of 2 sends one piece each";
  deliver_all();
  EXPECT_EQ(written_[0], 0);
  write(1, 1, 7);
  deliver_all();
  EXPECT_EQ(written_[0], 1);
}

TEST_F(EarlyPartsTest, AreSummedAgainAfterADeath) {
  start(6, 3);
  for (const MemberId id : {0U, 1U, 2U}) write_parts(id, 1, id + 1.0, 2);
  deliver_all();
  remove(2);
  adopt_all();
  deliver_all();
  for (const MemberId id : {0U, 1U}) write(id, 1, id + 1.0);
  deliver_all();
  for (const MemberId id : {0U, 1U})
    for (RangeId r = 0; r < 6; ++r) EXPECT_EQ(sum(id, r), 3) << "nothing of worker 2";
}

TEST_F(EarlyPartsTest, OfAnotherStepAreIgnored) {
  write_parts(0, 2, 5, 2);
  EXPECT_EQ(count_pieces(), 0U);
}

/// Sum numbers that no correct worker sends, and buckets that the receiver has not started.
TEST_F(EarlyPartsTest, OtherPiecesDoNoHarm) {
  write(0, 1, 5);
  std::vector<InFlight> pieces = in_flight_;
  ASSERT_FALSE(pieces.empty());
  for (InFlight& message : pieces) {
    auto* piece = std::get_if<SumPiece>(&message.sent.message);
    if (piece == nullptr) continue;
    for (const collective::CollectiveId number :
         {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1000}, UINT64_MAX}) {
      piece->sum = number;
      deliver(message);
      SumAck ack{.epoch = piece->epoch, .sum = number, .slices = 1};
      run(1, [&](auto& e, const auto& c) { (void)e.on(c, 0, ack); });
    }
  }
  write(1, 1, 7);
  deliver_all();
  for (const MemberId id : {0U, 1U}) {
    EXPECT_EQ(written_[id], 1);
    for (RangeId r = 2; r < 6; ++r) EXPECT_EQ(sum(id, r), 12);
  }
  expect_equal_copies();
}

/// The result does not depend on when parts come.
TEST_F(EarlyPartsTest, GiveTheSameCopiesAsWholeUpdatesToTheBit) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 0.3, .momentum = 0.9}, .schedule = {}, .batch = 3});
  for (const char* algorithm : {"ring", "halving", "parts"}) {
    name_ = std::string{"allreduce:"} + algorithm + ",buckets=3";
    std::vector<double> copies[2];
    for (const bool is_early : {false, true}) {
      start(6, 5);
      for (Step step = 1; step <= 5; ++step) {
        for (MemberId id = 0; id < 5; ++id) {
          const double value = std::sin(static_cast<double>(7 * step + id));
          for (const RangeId first : {RangeId{4}, RangeId{2}})
            if (is_early && id != 3) write_parts(id, step, value, first, 3);
          if (random_.below(2) == 0) deliver_all();
          write(id, step, value, 3);
        }
        deliver_all();
      }
      for (RangeId r = 0; r < 6; ++r) copies[is_early].push_back(sum(0, r));
      expect_equal_copies();
    }
    EXPECT_EQ(copies[0], copies[1]) << algorithm;
  }
}

}  // namespace
}  // namespace starling::core
