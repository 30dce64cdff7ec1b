/// Tests that SumClock, which simulates no message of a ring and none of members that all send to
/// each other, agrees with a simulation of every message of the schedules that live jobs run.
#include "starling/engine/sim/exchange_steps/sum_clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/exchange/allreduce/optimizer_shards.hpp"

namespace starling::sim {
namespace {

using collective::Algorithm;
using collective::Move;
using collective::Rank;
using collective::Schedule;

constexpr double bytes = 1e6;

/// Ports that send the messages of a schedule one by one. A message waits for its own chunks only.
class MoveByMove {
 public:
  MoveByMove(const Schedule& schedule, const collective::Network& network)
      : schedule_(schedule),
        latency_(1e9 * network.latency_s),
        vector_(1e9 * bytes / network.bytes_per_second),
        sends_until_(schedule.members * schedule.ports),
        receives_until_(schedule.members * schedule.ports) {}

  std::vector<double> run(const std::vector<double>& begin) {
    const std::size_t n = schedule_.members;
    std::vector<std::vector<double>> ready(schedule_.chunks.size(), begin);
    for (const auto& round : schedule_.rounds) {
      const auto before = ready;
      for (const auto& [key, moves] : messages_of(round)) {
        const auto [distance, from, to, port] = key;
        double leaves_at = sends_until_[from * schedule_.ports + port];
        double share = 0;
        for (const Move& move : moves) {
          leaves_at = std::max(leaves_at, before[move.chunk][from]);
          share += schedule_.chunks[move.chunk].share;
        }
        sends_until_[from * schedule_.ports + port] = leaves_at + share * vector_;
        double& receives_until = receives_until_[to * schedule_.ports + port];
        receives_until = std::max(receives_until, leaves_at + latency_) + share * vector_;
        for (const Move& move : moves)
          ready[move.chunk][to] = std::max(ready[move.chunk][to], receives_until);
      }
    }
    std::vector<double> finished = begin;
    for (const auto& chunk : ready)
      for (std::size_t i = 0; i < n; ++i) finished[i] = std::max(finished[i], chunk[i]);
    return finished;
  }

 private:
  /// In the order of a port: first the message to the next member.
  using Key = std::tuple<std::size_t, Rank, Rank, std::uint8_t>;

  [[nodiscard]] std::map<Key, std::vector<Move>> messages_of(const collective::Round& round) const {
    std::map<Key, std::vector<Move>> messages;
    // Only the chunks of the two trees are messages of their own in the order of the schedule.
    for (const Move& move : round) {
      const std::size_t distance =
          schedule_.chunks.size() == 2 && schedule_.ports == 1
              ? move.chunk * schedule_.members
              : (move.to + schedule_.members - move.from) % schedule_.members;
      messages[{distance, move.from, move.to, move.port}].push_back(move);
    }
    return messages;
  }

  const Schedule& schedule_;
  double latency_;
  double vector_;
  std::vector<double> sends_until_;
  std::vector<double> receives_until_;
};

struct ClockCase {
  const char* algorithm;
  std::size_t members;
};

void PrintTo(const ClockCase& c, std::ostream* out) { *out << c.algorithm << " " << c.members; }

/// The name of the algorithm whose sums go through backups.
constexpr std::string_view shards = "shards";

Schedule schedule_of(std::string_view name, std::size_t members) {
  if (name != shards)
    return collective::make_schedule(collective::parse_algorithm(name).value(),
                                     collective::Operation::all_reduce, members, 0)
        .value();
  std::vector<Rank> backups(members);
  for (Rank i = 0; i < members; ++i) backups[i] = static_cast<Rank>((i + 1) % members);
  return core::sharded_schedule(backups);
}

SumClock clock_of(std::string_view name, std::size_t members, const collective::Network& network) {
  if (name == shards) return SumClock::of_shards(members, bytes, network);
  return {collective::parse_algorithm(name).value(), members, bytes, network};
}

class EveryClock : public testing::TestWithParam<ClockCase> {};

/// The members take part at random times, in three sums one after another, of networks in which the
/// latency, the bandwidth or neither takes no time.
TEST_P(EveryClock, AgreesWithASimulationOfEveryMessage) {
  const auto [name, members] = GetParam();
  const Schedule schedule = schedule_of(name, members);
  for (const auto& [latency, bandwidth] :
       {std::pair{50e-6, 1e9}, {0.0, 1e8}, {1e-3, 1e12}, {2e-3, 1e8}}) {
    const collective::Network network{.latency_s = latency, .bytes_per_second = bandwidth};
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Random random{seed};
      SumClock clock = clock_of(name, members, network);
      MoveByMove moves{schedule, network};
      std::vector<double> begin(members);
      for (int sum = 0; sum < 3; ++sum) {
        for (double& at : begin) at += random.exponential(seed % 2 == 0 ? 1e5 : 1e7);
        std::vector<double> finished = begin;
        clock.run(finished);
        const auto expected = moves.run(begin);
        for (std::size_t i = 0; i < members; ++i)
          ASSERT_NEAR(finished[i], expected[i], 1e-9 * expected[i])
              << "member " << i << ", seed " << seed << ", sum " << sum << ", latency " << latency
              << ", bandwidth " << bandwidth;
        begin = finished;
      }
    }
  }
}

TEST_P(EveryClock, CountsTheMessagesAndBytesOfTheSchedule) {
  const auto [name, members] = GetParam();
  const Schedule schedule = schedule_of(name, members);
  const SumClock clock = clock_of(name, members, {});
  double sent = 0;
  for (const auto& round : schedule.rounds)
    for (const Move& move : round) sent += bytes * schedule.chunks[move.chunk].share;
  EXPECT_NEAR(clock.bytes(), sent, 1e-9 * sent);
  if (std::string{name} == "double-tree") return;  // two chunks to one member are two messages
  EXPECT_EQ(clock.messages(), collective::cost(schedule, bytes, {}).value().messages);
}

INSTANTIATE_TEST_SUITE_P(
    Of, EveryClock,
    testing::Values(ClockCase{"ring", 2}, ClockCase{"ring", 3}, ClockCase{"ring", 17},
                    ClockCase{"tree", 2}, ClockCase{"tree", 13}, ClockCase{"tree", 16},
                    ClockCase{"double-tree", 8}, ClockCase{"double-tree", 11},
                    ClockCase{"doubling", 2}, ClockCase{"doubling", 8}, ClockCase{"doubling", 13},
                    ClockCase{"halving", 2}, ClockCase{"halving", 8}, ClockCase{"halving", 13},
                    ClockCase{"parts", 2}, ClockCase{"parts", 9}, ClockCase{"shards", 2},
                    ClockCase{"shards", 3}, ClockCase{"shards", 12}, ClockCase{"groups:4", 13},
                    ClockCase{"groups:3", 12}, ClockCase{"groups:5", 5}, ClockCase{"groups:1", 6},
                    ClockCase{"bcube:k=2", 9}, ClockCase{"bcube:k=3", 8},
                    ClockCase{"bcube:k=1", 4}));

/// The formulas of Thakur et al. 2005, section 4.5, at 10^4 members that take part at once.
TEST(SumClockTest, TakesAsLongAsTheFormulasSay) {
  constexpr std::size_t n = 10000;
  constexpr double latency = 50e3;
  constexpr double vector = 1e6;  // 1 MB at 1 GB/s
  const auto seconds_of = [](const char* name, std::size_t members) {
    std::vector<double> times(members);
    SumClock{collective::parse_algorithm(name).value(), members, bytes, {50e-6, 1e9}}.run(times);
    return std::ranges::max(times);
  };
  const double ring = 2.0 * (n - 1) * (latency + vector / n);
  EXPECT_NEAR(seconds_of("ring", n), ring, 1e-9 * ring);
  const double tree = 2.0 * 13 * (latency + vector);
  EXPECT_NEAR(seconds_of("tree", 8192), tree, 1e-9 * tree);
  const double doubling = 13 * (latency + vector);
  EXPECT_NEAR(seconds_of("doubling", 8192), doubling, 1e-9 * doubling);
  const double halving = 2.0 * (13 * latency + 8191.0 / 8192 * vector);
  EXPECT_NEAR(seconds_of("halving", 8192), halving, 1e-9 * halving);
  const double parts = 2.0 * (latency + (n - 1.0) / n * vector);
  EXPECT_NEAR(seconds_of("parts", n), parts, 1e-9 * parts);
  const double bcube = 2.0 * (2 * latency + (n - 1.0) / n * vector / 2);
  EXPECT_NEAR(seconds_of("bcube:k=2", n), bcube, 1e-9 * bcube);
}

TEST(SumClockTest, RefusesMembersThatAnAlgorithmCannotHave) {
  const auto refused = [](const char* name, std::size_t members) {
    return check_algorithm(collective::parse_algorithm(name).value(), members).error().message;
  };
  EXPECT_EQ(refused("bcube:k=2", 10),
            "bcube:k=2: 10 members do not fill a cube of k=2; valid: 1, 2^2, 3^2, 4^2, ...");
  EXPECT_EQ(refused("groups:4", 3),
            "groups:4: groups of 4 among 3 members; valid: groups of 1 to 3");
  EXPECT_EQ(
      refused("trees:0-1+1-2", 3),
      "trees:0-1+1-2 is made for the links of a topology, and all ports are alike at the step "
      "level; valid: ring, tree, double-tree, doubling, halving, parts, groups:4, bcube:k=2");
  EXPECT_TRUE(check_algorithm(collective::Ring{}, 100000).ok());
}

}  // namespace
}  // namespace starling::sim
