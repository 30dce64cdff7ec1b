/// Tests the elastic exchange message by message: how a copy and the center move, which steps count
/// when, and that nothing appears or gets lost while workers join, end and die.
#include "starling/engine/exchange/elastic/elastic.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/exchange_harness.hpp"
#include "tests/sanitized.hpp"

namespace starling::core {
namespace {

/// Workers have ids from 0, and the one server, which owns all ranges, has id 5.
class ElasticTest : public ExchangeHarness<ElasticExchange> {
 protected:
  static constexpr MemberId server = 5;

  /// Starts a job in which each update adds 1 to each range.
  void start_with_server(MemberId workers, const std::string& name, std::size_t ranges = 1) {
    name_ = name;
    written_.clear();
    reads_.clear();
    std::vector<Member> members;
    for (MemberId id = 0; id < workers; ++id) members.push_back({id, 1, true, false});
    members.push_back({server, 1, false, true});
    configuration_ =
        first_configuration(std::move(members), static_cast<std::uint32_t>(ranges), 1, false);
    start(ranges);
    for (MemberId id = 0; id < workers; ++id) read(id, 0);
    deliver_all();
  }
  void deliver_all() {
    while (!in_flight_.empty()) {
      const InFlight message = in_flight_.front();
      in_flight_.erase(in_flight_.begin());
      deliver(message);
    }
  }
  void step(MemberId id, Step step) {
    write(id, step);
    deliver_all();
  }
  void end(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.end(c, {step}); });
  }
  double copy(MemberId id, RangeId range = 0) { return exchange(id).copy<double>(range)[0]; }
  double center(RangeId range = 0) { return exchange(server).state(range).value.as<double>()[0]; }
};

TEST_F(ElasticTest, CopyAndCenterMoveTowardEachOtherAfterEachNthStep) {
  start_with_server(2, "elastic:every=2,pull=0.25");
  step(0, 1);
  EXPECT_EQ(written_[0], 1) << "counts at once";
  EXPECT_EQ(copy(0), 1);
  EXPECT_EQ(center(), 0);
  EXPECT_TRUE(exchange(0).progress().empty());
  write(0, 2);
  EXPECT_EQ(written_[0], 1) << "the owners do not have the move yet";
  EXPECT_FALSE(exchange(0).may_leave());
  deliver_all();
  EXPECT_EQ(written_[0], 2);
  EXPECT_TRUE(exchange(0).may_leave());
  EXPECT_EQ(copy(0), 1.5) << "2 - 2 / 4";
  EXPECT_EQ(center(), 0.5);
  ASSERT_EQ(exchange(server).progress().size(), 1U);
  EXPECT_EQ(exchange(server).progress()[0].step, 2U);
  EXPECT_EQ(exchange(server).progress()[0].samples, 2U);
  EXPECT_EQ(copy(1), 0) << "another worker sees it where it moves itself";
  step(1, 1);
  step(1, 2);
  EXPECT_EQ(copy(1), 2 - (2 - 0.5) / 4);
  EXPECT_EQ(center(), 0.5 + (2 - 0.5) / 4);
}

TEST_F(ElasticTest, ReadsAreOfTheWorkersCopy) {
  start_with_server(2, "elastic:every=2,pull=0.25");
  EXPECT_EQ(reads_[0], 0);
  step(0, 1);
  read(0, 1);
  EXPECT_EQ(reads_[0], 1);
  EXPECT_TRUE(in_flight_.empty());
}

/// All read the center before any of them moves it.
TEST_F(ElasticTest, WorkersThatMoveTheCenterAtOnceMeetIt) {
  start_with_server(4, "elastic:every=1,pull=0.5");
  EXPECT_EQ(exchange(0).pull(), 0.2);
  for (MemberId id = 0; id < 4; ++id) write(id, 1);
  deliver_all();
  EXPECT_DOUBLE_EQ(center(), 0.8);
  for (MemberId id = 0; id < 4; ++id) EXPECT_DOUBLE_EQ(copy(id), 0.8);
}

/// Elastic averaging with one worker: both go on from half-way.
TEST_F(ElasticTest, OneWorkerMeetsTheCenterHalfWay) {
  start_with_server(1, "elastic:every=1,pull=0.5");
  step(0, 1);
  EXPECT_EQ(copy(0), 0.5);
  EXPECT_EQ(center(), 0.5);
}

/// The loss (x^2 - 1)^2 / 4 has a maximum at 0 between two minima. Each worker begins on one side
/// of it, at the same distance. The pull is stronger than the descent, so both end at the maximum.
TEST_F(ElasticTest, StaysAtTheTopOfASymmetricDoubleWell) {
  applier_ = gradient_applier<double>({.optimizer = models::Sgd{.lr = 0.1}, .schedule = {}});
  start_with_server(2, "elastic:every=1,pull=0.5");
  for (Step s = 1; s <= 100; ++s) {
    for (MemberId id = 0; id < 2; ++id) {
      const double x = copy(id);
      const double start = id == 0 ? -5 : 5;
      write(id, s, s == 1 ? start : x * x * x - x);
    }
    deliver_all();
  }
  EXPECT_EQ(written_[0], 100);
  EXPECT_NEAR(copy(0), 0, 1e-6);
  EXPECT_NEAR(copy(1), 0, 1e-6);
  EXPECT_NEAR(center(), 0, 1e-12);
}

TEST_F(ElasticTest, LastStepsReachTheCenter) {
  start_with_server(1, "elastic:every=4,pull=0.5");
  step(0, 1);
  end(0, 1);
  EXPECT_FALSE(exchange(0).may_leave());
  deliver_all();
  EXPECT_TRUE(exchange(0).may_leave());
  EXPECT_EQ(written_[0], 1) << "the worker has not asked for this";
  EXPECT_EQ(center(), 0.5);
  EXPECT_EQ(exchange(server).progress()[0].step, 1U);
}

TEST_F(ElasticTest, EndAfterAMoveMovesNothing) {
  start_with_server(1, "elastic:every=1,pull=0.25");
  step(0, 1);
  end(0, 1);
  EXPECT_TRUE(exchange(0).may_leave());
  deliver_all();
  EXPECT_EQ(center(), 0.25);
}

TEST_F(ElasticTest, WorkerThatJoinsBeginsWithTheCenter) {
  start_with_server(1, "elastic:every=1,pull=0.5");
  step(0, 1);
  add(1);
  configuration_.members.back().owns = false;
  for (const Member& member : configuration_.members) adopt(member.id);
  EXPECT_FALSE(exchange(1).has_copy());
  read(1, 1);
  deliver_all();
  EXPECT_EQ(reads_[1], 0.5);
  EXPECT_DOUBLE_EQ(exchange(1).pull(), 1.0 / 3);
}

/// Momentum stays on the worker; the center has none.
TEST_F(ElasticTest, OptimizersAreTheWorkersOwn) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1, .momentum = 0.5}, .schedule = {}, .batch = 8});
  start_with_server(1, "elastic:every=2,pull=0.5");
  step(0, 1);
  EXPECT_EQ(copy(0), -1) << "the full rate, whatever the number of samples";
  step(0, 2);
  EXPECT_EQ(center(), -1.25) << "half of 1 + 1.5";
  step(0, 3);
  EXPECT_EQ(copy(0), -1.25 - 1.75);
  EXPECT_TRUE(exchange(server).state(0).slots.empty());
}

/// From the eighth sample on, the rate is a hundredth.
TEST_F(ElasticTest, ScheduleGoesByTheSamplesOfAll) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1},
       .schedule = models::parse_schedule("step:every=8,gamma=0.01").value(),
       .batch = 1});
  start_with_server(2, "elastic:every=2,pull=0.25");
  step(0, 1);
  EXPECT_EQ(copy(0), -1) << "the worker assumes that the other has made a step, too";
  step(0, 2);
  step(1, 1);
  step(1, 2);  // the center has 4 samples now, of which this worker has not read the first 2
  for (Step s = 3; s <= 4; ++s) step(0, s);
  for (Step s = 3; s <= 6; ++s) step(1, s);
  step(0, 5);
  step(0, 6);
  const double before = copy(0);
  step(0, 7);
  EXPECT_NEAR(copy(0), before - 0.01, 1e-12) << "there are 12 samples";
  add(10);
  configuration_.members.back().owns = false;
  for (const Member& member : configuration_.members) adopt(member.id);
  read(10, 6);
  deliver_all();
  const double first = copy(10);
  write(10, 7);
  EXPECT_NEAR(copy(10), first - 0.01, 1e-12) << "a worker that joins begins where the others are";
}

/// Workers join, end and die at any message. The center and the copies add up to the updates that
/// workers have made, to the copies with which workers have begun, less those that the dead had.
TEST_F(ElasticTest, NothingAppearsOrGetsLost) {
  constexpr std::uint64_t seeds = seeds_to_run(400);
  int deaths_in_moves = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    random_ = Random{seed};
    const std::size_t ranges = 1 + seed % 3;
    start_with_server(static_cast<MemberId>(1 + random_.below(4)),
                      "elastic:every=" + std::to_string(1 + seed % 4) + ",pull=0.3", ranges);
    std::vector<double> expected(ranges);
    std::map<MemberId, Step> steps;
    std::set<MemberId> joining;
    std::set<MemberId> ended;
    for (const Member& member : configuration_.members)
      if (member.works) steps[member.id] = 0;
    MemberId joiner = 10;
    for (int event = 0; event < 300; ++event) {
      const Member member = configuration_.members[random_.below(configuration_.members.size())];
      const MemberId id = member.id;
      if (joining.contains(id) && exchange(id).has_copy()) {
        joining.erase(id);
        for (RangeId r = 0; r < ranges; ++r) expected[r] += copy(id, r);
      }
      const bool is_idle = member.works && !joining.contains(id) && !ended.contains(id) &&
                           written_[id] == static_cast<int>(steps[id]);
      const std::uint64_t choice = random_.below(40);
      if (choice == 0 && configuration_.members.size() < 7) {
        add(joiner);
        configuration_.members.back().owns = false;
        for (const Member& other : configuration_.members) adopt(other.id);
        steps[joiner] = 0;
        read(joiner, 0);
        joining.insert(joiner++);
      } else if (choice == 1 && member.works && configuration_.members.size() > 2) {
        for (RangeId r = 0; r < ranges && !joining.contains(id); ++r) expected[r] -= copy(id, r);
        for (const InFlight& message : in_flight_)
          if (const auto* push = std::get_if<Push>(&message.sent.message);
              push != nullptr && message.from == id) {
            expected[push->range] -= push->update.as<double>()[0];
            ++deaths_in_moves;
          }
        drop_messages_of(id);
        std::erase_if(in_flight_, [&](const InFlight& message) { return message.sent.to == id; });
        joining.erase(id);
        remove(id);
        for (const Member& other : configuration_.members) adopt(other.id);
      } else if (choice == 2 && is_idle) {
        end(id, steps[id]);
        ended.insert(id);
      } else if (choice < 20 && is_idle) {
        write(id, ++steps[id]);
        for (double& sum : expected) sum += 1;
      } else if (!in_flight_.empty()) {
        deliver_one_in_order();
      }
    }
    deliver_all();
    for (RangeId r = 0; r < ranges; ++r) {
      double sum = center(r);
      for (const Member& member : configuration_.members) {
        if (!member.works) continue;
        sum += copy(member.id, r);
        if (joining.contains(member.id)) expected[r] += copy(member.id, r);
        EXPECT_TRUE(exchange(member.id).may_leave());
      }
      EXPECT_NEAR(sum, expected[r], 1e-9);
    }
    ASSERT_EQ(failure_, "");
  }
  EXPECT_GT(deaths_in_moves, static_cast<int>(seeds / 20));
}

TEST(ElasticArguments, AreChecked) {
  EXPECT_EQ(parse_elastic("elastic").value(), (ElasticSettings{8, 0.1}));
  EXPECT_EQ(parse_elastic("elastic:pull=0.5").value(), (ElasticSettings{8, 0.5}));
  EXPECT_EQ(message_of(check_exchange("elastic")), "");
  EXPECT_EQ(message_of(check_exchange("elastic:every=1000000,pull=1e-9")), "");
  const std::map<std::string, std::string> bad{
      {"every=0", "every=0"},  {"every=1000001", "1000000"}, {"every=x", "every=x"},
      {"pull=0", "up to 0.5"}, {"pull=0.6", "0.5"},          {"pull=-1", "-1"},
      {"pull=nan", "nan"},     {"evry=2", "every"},          {"2", "2"}};
  for (const auto& [argument, text] : bad) {
    const std::string error = message_of(check_exchange("elastic:" + argument));
    EXPECT_NE(error.find("exchange: elastic"), std::string::npos) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
  }
}

/// All members of a process share the states with which the job starts.
TEST_F(ElasticTest, StatesWithoutStateOfAnOptimizerAreNotCopied) {
  const auto states = std::make_shared<const std::vector<RangeState>>(initial_states());
  ExchangeOptions options;
  options.name = "elastic";
  options.layout = layout_;
  options.applier = applier_;
  options.initial_states = states;
  const auto before = states.use_count();
  const ElasticExchange exchange{options};
  EXPECT_GE(states.use_count(), before + 3) << "the exchange, its replica and its shard";
}

}  // namespace
}  // namespace starling::core
