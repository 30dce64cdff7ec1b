/// Runs the schedules of all algorithms over networks that lose, duplicate, reorder and delay
/// packets, and compares the results with the sums in the order of the schedules, bit by bit.
#include "starling/engine/exchange/collective/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/collective/schedules.hpp"
#include "tests/engine/collective/simulated_members.hpp"
#include "tests/sanitized.hpp"

namespace starling::collective {
namespace {

using namespace std::chrono_literals;
using core::Time;

/// Returns the options of a link that is worse than any real one.
sim::LinkOptions terrible_link() {
  return {.latency = {laws::Exponential{3ms}},
          .loss = 0.2,
          .duplication = 0.1,
          .reordering = 0.1,
          .delay = {laws::Exponential{30ms}}};
}
/// Returns the options of a link on which packets overtake one another.
sim::LinkOptions uneven_link() { return {.latency = {laws::Exponential{1ms}}}; }

Time some_time(Random& random) { return Time{random.below(20'000'000)}; }

void run_alone(const Schedule& schedule, const sim::LinkOptions& link, std::uint64_t seed,
               std::size_t size, std::uint32_t slices) {
  Random random{seed};
  const auto values = random_vectors(schedule.members, size, random);
  SimulatedMembers<float> members{schedule.members, link, seed};
  for (Rank i = 0; i < schedule.members; ++i)
    members.start_at(some_time(random), i, 1, schedule, values[i], slices);
  ASSERT_NO_FATAL_FAILURE(members.run());
  expect_equal_results(schedule, execute_in_order(schedule, values), members.results(1));
  members.expect_settled();
}

class ExecutorMembers : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(UpTo, ExecutorMembers,
                         testing::Range<std::size_t>(1, sanitized ? 10 : 18));

TEST_P(ExecutorMembers, SumInTheOrderOfTheScheduleOverATerribleNetwork) {
  const std::size_t n = GetParam();
  std::uint64_t seed = 100 * n;
  for (const Algorithm& algorithm : algorithms_for(n)) {
    SCOPED_TRACE(print(algorithm));
    ASSERT_NO_FATAL_FAILURE(run_alone(make(algorithm, n), terrible_link(), ++seed, 101, 3));
  }
}

TEST_P(ExecutorMembers, RunEachOperation) {
  const std::size_t n = GetParam();
  std::uint64_t seed = 200 * n;
  for (const Algorithm& algorithm : algorithms_for(n))
    for (const Operation operation : operations()) {
      const auto root = static_cast<Rank>(seed % n);
      SCOPED_TRACE(label(algorithm, operation, n, root));
      ASSERT_NO_FATAL_FAILURE(
          run_alone(make(algorithm, n, operation, root), uneven_link(), ++seed, 40, 2));
    }
}

TEST_P(ExecutorMembers, RunSeveralCollectivesAtOnce) {
  const std::size_t n = GetParam();
  Random random{n};
  SimulatedMembers<float> members{n, terrible_link(), n, {.window = 2, .open_max = 3}};
  std::map<CollectiveId, std::pair<Schedule, Vectors<float>>> started;
  const auto algorithms = algorithms_for(n);
  std::vector<Time> at(n);
  for (CollectiveId id = 1; id <= 6; ++id) {
    const Schedule schedule = make(algorithms[id % algorithms.size()], n);
    const auto values = random_vectors(n, 30 * id, random);
    for (Rank i = 0; i < n; ++i)
      members.start_at(at[i] += some_time(random), i, id, schedule, values[i], 5);
    started[id] = {schedule, execute_in_order(schedule, values)};
  }
  ASSERT_NO_FATAL_FAILURE(members.run());
  for (const auto& [id, expected] : started)
    expect_equal_results(expected.first, expected.second, members.results(id));
  members.expect_settled();
  if (n > 1) {
    EXPECT_EQ(members.most_open(), 3U);
  }
}

TEST(Executor, TakesAnyElementsWithASum) {
  const Schedule schedule = make(Halving{}, 6);
  SimulatedMembers<std::int64_t> members{6, terrible_link(), 3};
  Vectors<std::int64_t> values(6, std::vector<std::int64_t>(50));
  for (Rank i = 0; i < 6; ++i) {
    for (std::size_t e = 0; e < 50; ++e) values[i][e] = static_cast<std::int64_t>(e + 1) << i;
    members.start_at(0ms, i, 1, schedule, values[i], 4);
  }
  ASSERT_NO_FATAL_FAILURE(members.run());
  for (const auto& result : members.results(1))
    for (std::size_t e = 0; e < 50; ++e)
      EXPECT_EQ(result[e], static_cast<std::int64_t>(e + 1) * 63);
}

/// Workers each apply the sum, so it must be the same to the last bit.
TEST(AllReduce, GivesAllMembersTheSameBits) {
  Random random{7};
  for (std::size_t n = 1; n <= 20; ++n)
    for (const Algorithm& algorithm : algorithms_for(n)) {
      const auto results = execute_in_order(make(algorithm, n), random_vectors(n, 50, random));
      for (std::size_t member = 1; member < n; ++member)
        ASSERT_EQ(results[member], results[0]) << label(algorithm, Operation::all_reduce, n, 0);
    }
}

TEST(Executor, TakesVectorsWithFewerElementsThanChunks) {
  for (const std::size_t size : {0, 1, 3})
    ASSERT_NO_FATAL_FAILURE(run_alone(make(Ring{}, 7), uneven_link(), size, size, 3));
}

// The root of a broadcast hears of nobody, and could send everything at once.
TEST(Executor, BoundsWhatWaitsAtASlowMember) {
  const Schedule schedule = make(BinomialTree{}, 4, Operation::broadcast);
  SimulatedMembers<float> members{4, uneven_link(), 1, {.window = 3, .open_max = 2}};
  Random random{1};
  for (CollectiveId id = 1; id <= 2; ++id) {
    const auto values = random_vectors(4, 1000, random);
    for (Rank i = 0; i < 4; ++i) {
      const Time late = i == 2 ? 2s : 0s;  // the parent of member 3
      members.start_at(late + Time{id}, i, id, schedule, values[i], 100);
    }
  }
  ASSERT_NO_FATAL_FAILURE(members.run());
  members.expect_settled();
  EXPECT_EQ(members.results(2)[3], members.results(2)[0]);
  EXPECT_EQ(members.most_waiting(), 2 * 3U);
}

/// One member of a ring of two.
class ExecutorAlone : public testing::Test {
 protected:
  ExecutorAlone() {
    const auto program = std::make_shared<const Program>(make_program(make(Ring{}, 2), 0));
    executor_.start(effects_, 5, program, {1, 2}, 1);
  }
  static Message<float> piece(Piece<float> piece, const std::vector<float>& values) {
    piece.values = SharedElements<float>::copy_of(values);
    return piece;
  }

  Executor<float> executor_{{.window = 1, .open_max = 2}};
  Effects<float> effects_;
};

TEST_F(ExecutorAlone, SendsAddsAndCompletes) {
  // Chunk 1 is summed at member 1, and chunk 0 at member 0.
  ASSERT_EQ(effects_.size(), 1U);
  const auto& sent = std::get<Piece<float>>(std::get<Send<float>>(effects_[0]).message);
  EXPECT_EQ(sent.chunk, 1U);
  EXPECT_TRUE(std::ranges::equal(sent.values.elements, std::vector<float>{2}));
  effects_.clear();
  EXPECT_TRUE(executor_.on(effects_, 1, piece({5, 0, 1, 1, {}}, {12})));
  EXPECT_TRUE(effects_.empty());
  EXPECT_TRUE(executor_.on(effects_, 1, piece({5, 0, 0, 0, {}}, {10})));
  ASSERT_EQ(effects_.size(), 2U);  // the sum of chunk 0, the result
  EXPECT_EQ(std::get<Completed<float>>(effects_[1]).values, (std::vector<float>{11, 12}));
  EXPECT_EQ(executor_.open_count(), 0U) << "member 1 has begun: its part is in the sum";
}

TEST(Executor, AwaitsAnAcknowledgementOfThoseThatContributeNothing) {
  const Schedule schedule = make(BinomialTree{}, 2, Operation::broadcast);
  const auto program = [&](Rank self) {
    return std::make_shared<const Program>(make_program(schedule, self));
  };
  Executor<float> root;
  Executor<float> other;
  Effects<float> sent;
  root.start(sent, 1, program(0), {7}, 1);
  ASSERT_EQ(sent.size(), 2U);  // the value, and the root's result
  EXPECT_EQ(root.open_count(), 1U) << "the other member may not have begun";
  Effects<float> answered;
  other.start(answered, 1, program(1), {0}, 1);
  EXPECT_TRUE(other.on(answered, 0, std::get<Send<float>>(sent[0]).message));
  ASSERT_EQ(answered.size(), 2U);  // the acknowledgement, and the other's result
  EXPECT_EQ(other.open_count(), 0U);
  EXPECT_TRUE(root.on(sent, 1, std::get<Send<float>>(answered[0]).message));
  EXPECT_EQ(root.open_count(), 0U);
}

TEST_F(ExecutorAlone, RefusesWhatNoCorrectMemberSends) {
  effects_.clear();
  const std::vector<float> one{10};
  EXPECT_FALSE(executor_.on(effects_, 1, piece({4, 0, 0, 0, {}}, one))) << "never started";
  EXPECT_FALSE(executor_.on(effects_, 1, piece({5, 1, 0, 0, {}}, one))) << "no such slice";
  EXPECT_FALSE(executor_.on(effects_, 1, piece({5, 0, 2, 0, {}}, one))) << "no such chunk";
  EXPECT_FALSE(executor_.on(effects_, 1, piece({5, 0, 0, 1, {}}, one))) << "no such move";
  EXPECT_FALSE(executor_.on(effects_, 0, piece({5, 0, 0, 0, {}}, one))) << "not the sender";
  EXPECT_FALSE(executor_.on(effects_, 1, piece({5, 0, 0, 0, {}}, {1, 2}))) << "too long";
  EXPECT_FALSE(executor_.on(effects_, 1, Piece<float>{5, 0, 0, 0, {}}));
  EXPECT_FALSE(executor_.on(effects_, 1, Ack{5, 2}));
  EXPECT_FALSE(executor_.on(effects_, 7, Ack{5, 1}));
  EXPECT_TRUE(executor_.on(effects_, 1, Ack{6, 0})) << "not started yet";
  EXPECT_TRUE(executor_.on(effects_, 1, Ack{7, 0}));
  EXPECT_FALSE(executor_.on(effects_, 1, Ack{8, 0})) << "too far ahead";
  EXPECT_TRUE(effects_.empty());
}

}  // namespace
}  // namespace starling::collective
