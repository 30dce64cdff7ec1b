/// Proves the schedules of all algorithms, and shows that the checker names what is wrong with bad
/// ones.
#include "starling/engine/exchange/collective/check.hpp"

#include <gtest/gtest.h>

#include "tests/engine/collective/schedules.hpp"
#include "tests/sanitized.hpp"

namespace starling::collective {
namespace {

class Members : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(UpTo, Members, testing::Range<std::size_t>(1, sanitized ? 10 : 18));

TEST_P(Members, AllSchedulesSumEachChunkOnceAndDeliverIt) {
  const std::size_t n = GetParam();
  for (const Algorithm& algorithm : algorithms_for(n))
    for (const Operation operation : operations())
      for (const std::size_t root : {std::size_t{0}, n / 2, n - 1}) {
        if (root > 0 && !has_root(operation)) continue;
        SCOPED_TRACE(label(algorithm, operation, n, static_cast<Rank>(root)));
        const Schedule schedule = make(algorithm, n, operation, static_cast<Rank>(root));
        const auto proven = check(schedule);
        ASSERT_TRUE(proven) << proven.error().message;
        if (n > 1) {
          EXPECT_FALSE(schedule.rounds.empty());
        }
      }
}

TEST_P(Members, PipelinedSchedulesAreRightToo) {
  const std::size_t n = GetParam();
  for (const Algorithm& algorithm : algorithms_for(n))
    for (const std::size_t slices : {1, 2, 5}) {
      SCOPED_TRACE(print(algorithm));
      const Schedule schedule = make(algorithm, n);
      const auto proven = check(pipelined(schedule, slices));
      ASSERT_TRUE(proven) << proven.error().message;
      if (n > 1) {
        EXPECT_EQ(pipelined(schedule, slices).rounds.size(), schedule.rounds.size() + slices - 1);
      }
    }
}

TEST(Operations, AreGivenByTheirChunks) {
  const Schedule gather = make(Ring{}, 3, Operation::gather, 1);
  ASSERT_EQ(gather.chunks.size(), 3U);
  EXPECT_EQ(gather.chunks[2].source, 2U);
  EXPECT_EQ(gather.chunks[2].destination, 1U);
  EXPECT_EQ(gather.chunks[2].share, 1.0 / 3);
  const Schedule all = make(Parts{}, 3, Operation::all_to_all);
  ASSERT_EQ(all.chunks.size(), 9U);
  EXPECT_EQ(all.chunks[5].source, 1U);
  EXPECT_EQ(all.chunks[5].destination, 2U);
  EXPECT_EQ(count_moves(all), 6U);
}

TEST(Operations, DropTheMovesThatCarryNothing) {
  // The chain of a pipelined broadcast: each of the others receives each chunk once.
  const Schedule broadcast = make(Ring{}, 5, Operation::broadcast, 3);
  EXPECT_EQ(count_moves(broadcast), 4 * broadcast.chunks.size());
  for (const Round& round : broadcast.rounds)
    for (const Move& move : round) EXPECT_EQ(move.action, ReceiveAction::copy);
  // Half of an all-reduce.
  EXPECT_EQ(make(Ring{}, 5, Operation::reduce_scatter).rounds.size(), 4U);
  EXPECT_EQ(make(Halving{}, 8, Operation::all_gather).rounds.size(), 3U);
  EXPECT_EQ(make(BinomialTree{}, 8, Operation::broadcast, 5).rounds.size(), 3U);
  EXPECT_EQ(make(Parts{}, 8, Operation::scatter, 5).rounds.size(), 1U);
}

/// A schedule with a mistake, and the error that names it.
struct Sabotage {
  std::string name;
  void (*change)(Schedule& schedule);
  std::string error;
};

void PrintTo(const Sabotage& sabotage, std::ostream* out) { *out << sabotage.name; }

std::string name_of(const testing::TestParamInfo<Sabotage>& info) { return info.param.name; }

class Sabotaged : public testing::TestWithParam<Sabotage> {};

TEST_P(Sabotaged, IsNamed) {
  Schedule schedule = make(Ring{}, 4);
  ASSERT_TRUE(check(schedule));
  GetParam().change(schedule);
  const auto proven = check(schedule);
  ASSERT_FALSE(proven);
  EXPECT_EQ(proven.error().message, GetParam().error);
}

// Round 1 of the ring: 1 -> 2 adds chunk 0, 2 -> 3 adds chunk 1, 3 -> 0 adds chunk 2, ...
INSTANTIATE_TEST_SUITE_P(
    Rings, Sabotaged,
    testing::Values(
        Sabotage{"LostFirstMove", [](Schedule& s) { s.rounds[0].erase(s.rounds[0].begin()); },
                 "chunk 0 at member 0 lacks the contribution of member 1"},
        Sabotage{"LostLastMove", [](Schedule& s) { s.rounds[5].pop_back(); },
                 "chunk 3 at member 0 lacks the contribution of members 1, 2, 3"},
        Sabotage{"DoubledAdd",
                 [](Schedule& s) {
                   s.rounds[1].push_back({1, 2, 0, ReceiveAction::add});
                 },
                 "round 2: 1 -> 2 adds chunk 0: counts the contribution of member 1 twice"},
        Sabotage{"AddTwiceInARound",
                 [](Schedule& s) { s.rounds[0].push_back(s.rounds[0].front()); },
                 "round 1: 1 -> 2 adds chunk 0: occurs twice in the round"},
        Sabotage{"AddInALaterRoundToo",
                 [](Schedule& s) {
                   s.rounds[2].push_back({1, 0, 0, ReceiveAction::add});
                 },
                 "round 3: 1 -> 0 adds chunk 0: counts the contribution of member 1 twice"},
        Sabotage{"CopyBecomesAdd",
                 [](Schedule& s) { s.rounds[3].front().action = ReceiveAction::add; },
                 "round 4: 0 -> 3 adds chunk 0: counts the contribution of members 1, 2, 3 twice"},
        Sabotage{"AddBecomesCopy",
                 [](Schedule& s) { s.rounds[1].front().action = ReceiveAction::copy; },
                 "chunk 0 at member 0 lacks the contribution of member 3"},
        Sabotage{"SentARoundTooEarly",
                 [](Schedule& s) {
                   s.rounds[0].push_back(s.rounds[1].front());
                   s.rounds[1].erase(s.rounds[1].begin());
                 },
                 "chunk 0 at member 0 lacks the contribution of member 1"},
        Sabotage{"TwoWritesOfACopy",
                 [](Schedule& s) {
                   s.rounds[4].push_back({0, 2, 0, ReceiveAction::add});
                 },
                 "round 5: 3 -> 2 copies chunk 0: in the same round, 0 -> 2 adds chunk 0 writes "
                 "the same chunk"},
        Sabotage{"NoSuchMember", [](Schedule& s) { s.rounds[0].front().to = 4; },
                 "round 1: 1 -> 4 adds chunk 0: no such member, chunk or port"},
        Sabotage{"NoSuchPort", [](Schedule& s) { s.rounds[0].front().port = 1; },
                 "round 1: 1 -> 2 adds chunk 0: no such member, chunk or port"},
        Sabotage{"ToItself", [](Schedule& s) { s.rounds[0].front().to = 1; },
                 "round 1: 1 -> 1 adds chunk 0: sender and receiver are the same"},
        Sabotage{"Shares", [](Schedule& s) { s.chunks[0].share = 0.5; },
                 "the chunks' shares sum to 1.250000, not to 1"},
        Sabotage{"WrongSource", [](Schedule& s) { s.chunks[0].source = 2; },
                 "round 1: 1 -> 2 adds chunk 0: member 1 has no value of the chunk"}),
    name_of);

TEST(Sabotage, EachLostMoveOfAnyScheduleIsNamed) {
  for (const Algorithm& algorithm : algorithms_for(9)) {
    const Schedule schedule = make(algorithm, 9);
    for (std::size_t r = 0; r < schedule.rounds.size(); ++r)
      for (std::size_t m = 0; m < schedule.rounds[r].size(); ++m) {
        Schedule bad = schedule;
        bad.rounds[r].erase(bad.rounds[r].begin() + static_cast<std::ptrdiff_t>(m));
        const auto proven = check(bad);
        ASSERT_FALSE(proven) << print(algorithm) << " " << print(schedule.rounds[r][m]);
        EXPECT_NE(
            proven.error().message.find("chunk " + std::to_string(schedule.rounds[r][m].chunk)),
            std::string::npos)
            << proven.error().message;
      }
  }
}

TEST(Sabotage, EachDoubledMoveOfAnyScheduleIsNamed) {
  for (const Algorithm& algorithm : algorithms_for(9)) {
    const Schedule schedule = make(algorithm, 9);
    for (std::size_t r = 0; r < schedule.rounds.size(); ++r)
      for (const Move& move : schedule.rounds[r]) {
        if (move.action == ReceiveAction::copy) continue;  // harmless in a round of its own
        Schedule bad = schedule;
        bad.rounds.insert(bad.rounds.begin() + static_cast<std::ptrdiff_t>(r + 1), Round{move});
        ASSERT_FALSE(check(bad)) << print(algorithm) << " " << print(move);
      }
  }
}

TEST(ChunkBounds, CoverTheVectorWithoutGaps) {
  const auto bounds = chunk_bounds(equal_chunks(3), 10);
  EXPECT_EQ(bounds, (std::vector<std::size_t>{0, 3, 7, 10}));
  EXPECT_EQ(chunk_bounds(equal_chunks(3), 0), (std::vector<std::size_t>{0, 0, 0, 0}));
  EXPECT_EQ(chunk_bounds(equal_chunks(7), 3).back(), 3U);
}

}  // namespace
}  // namespace starling::collective
