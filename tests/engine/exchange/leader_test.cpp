/// Tests the leader exchange message by message: toward whom and how far a worker moves, which
/// steps count when, and that all go on while workers join, end and die.
#include "starling/engine/exchange/leader/leader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "starling/engine/core/training/exchanges.hpp"
#include "tests/engine/exchange/exchange_harness.hpp"
#include "tests/sanitized.hpp"

namespace starling::core {
namespace {

/// Worker i starts with the value 10 i, and each update adds 1.
class LeaderTest : public ExchangeHarness<LeaderExchange> {
 protected:
  void start_workers(MemberId workers, const std::string& name, std::size_t ranges = 1) {
    name_ = name;
    written_.clear();
    reads_.clear();
    losses_.clear();
    start(ranges, workers);
  }
  void deliver_all() {
    while (!in_flight_.empty()) deliver_first(0);
  }
  /// Delivers a message; those from one member to another come in order.
  void deliver_first(std::size_t i) {
    const InFlight drawn = in_flight_.at(i);
    const auto first = std::ranges::find_if(in_flight_, [&](const InFlight& message) {
      return message.from == drawn.from && message.sent.to == drawn.sent.to;
    });
    const InFlight message = *first;
    in_flight_.erase(first);
    deliver(message);
  }
  /// All workers make a step.
  void step_all(Step step) {
    for (const Member& member : configuration_.members) write(member.id, step);
    deliver_all();
  }
  void end(MemberId id, Step step) {
    run(id, [&](auto& e, const auto& c) { e.end(c, {step}); });
  }
  void adopt_all() {
    for (const Member& member : configuration_.members) adopt(member.id);
  }
  /// Loses the messages of a worker, and those to it, and removes it.
  void kill(MemberId id) {
    drop_messages_of(id);
    std::erase_if(in_flight_, [&](const InFlight& message) { return message.sent.to == id; });
    remove(id);
    adopt_all();
  }
  [[nodiscard]] double initial_of(MemberId id) const override {
    const auto start = start_of_.find(id);
    return start == start_of_.end() ? 0 : start->second;
  }

  std::map<MemberId, double> start_of_{{0, 0}, {1, 10}, {2, 20}, {3, 30}, {4, 40}, {5, 50}};
};

TEST_F(LeaderTest, WorkersMoveTowardTheOneWithTheLowestLoss) {
  start_workers(3, "leader:every=2,group=3,pull=0.5");
  losses_ = {{0, 3}, {1, 1}, {2, 2}};
  step_all(1);
  EXPECT_EQ(written_[0], 1) << "counts at once";
  step_all(2);
  EXPECT_EQ(written_[0], 2);
  const double before = sum(0);
  step_all(3);
  EXPECT_EQ(sum(0), before + 1);
  write(0, 4);
  EXPECT_EQ(exchange(0).leader(), (MemberIncarnation{1, 1}));
  deliver_all();
  EXPECT_EQ(sum(1), 13) << "the leader does not move";
  EXPECT_EQ(sum(0), (before + 2 + 13) / 2);
}

TEST_F(LeaderTest, LossIsThatOfTheStepsSinceTheLastReport) {
  start_workers(2, "leader:every=2,group=2,pull=0.5");
  losses_ = {{0, 9}, {1, 4}};
  step_all(1);
  losses_[0] = 1;
  step_all(2);  // the mean loss of worker 0 is 5
  write(0, 3);
  write(0, 4);  // now it is 1
  EXPECT_EQ(exchange(0).leader(), std::nullopt);
  deliver_all();
  write(1, 3);
  write(1, 4);
  EXPECT_EQ(exchange(1).leader(), (MemberIncarnation{0, 1}));
}

TEST_F(LeaderTest, OfEqualLossesTheLowestIdLeads) {
  start_workers(3, "leader:every=1,group=3,pull=0.5");
  step_all(1);
  for (MemberId id = 0; id < 3; ++id) write(id, 2);
  EXPECT_EQ(exchange(0).leader(), std::nullopt);
  EXPECT_EQ(exchange(1).leader(), (MemberIncarnation{0, 1}));
  EXPECT_EQ(exchange(2).leader(), (MemberIncarnation{0, 1}));
}

TEST_F(LeaderTest, GroupsFollowTheirOwnLeadersAndNowAndThenTheBestOfAll) {
  start_workers(5, "leader:every=1,group=2,pull=0.5,global_every=3,global_pull=1");
  losses_ = {{0, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 1}};
  for (Step s = 1; s <= 3; ++s) step_all(s);
  const auto leader_after = [&](MemberId id, Step step) {
    write(id, step);
    const auto leader = exchange(id).leader();
    deliver_all();
    return leader ? static_cast<int>(leader->id) : -1;
  };
  for (const auto& [id, leader] :
       std::map<MemberId, int>{{0, -1}, {1, 0}, {2, 3}, {3, -1}, {4, -1}})
    EXPECT_EQ(leader_after(id, 4), leader) << id;
  for (MemberId id = 0; id < 5; ++id) write(id, 5);
  deliver_all();
  for (const MemberId id : {0, 1, 2, 3}) {
    EXPECT_EQ(leader_after(id, 6), 4) << id;
    EXPECT_EQ(sum(id), sum(4)) << "takes its values over";
  }
  EXPECT_EQ(leader_after(4, 6), -1);
}

TEST_F(LeaderTest, ReportGoesToTheGroupAndCountsOnceItHasIt) {
  start_workers(4, "leader:every=2,group=2,global_every=4");
  write(2, 1);
  EXPECT_EQ(written_[2], 1);
  EXPECT_TRUE(in_flight_.empty());
  write(2, 2);
  EXPECT_EQ(in_flight_.size(), 1U);
  EXPECT_EQ(in_flight<LossReport>(2, 3), 1);
  EXPECT_EQ(written_[2], 1);
  EXPECT_TRUE(exchange(2).is_writing());
  deliver_all();
  EXPECT_EQ(written_[2], 2);
  const auto known = exchange(3).progress();
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0], (WorkerProgress{{2, 1}, 2, 2}));
  write(2, 3);
  write(2, 4);
  EXPECT_EQ(in_flight_.size(), 3U) << "each fourth step, all are told";
  deliver(0);
  deliver(2);
  deliver(1);
  deliver(2);
  EXPECT_EQ(written_[2], 3);
  kill(3);
  EXPECT_EQ(written_[2], 4) << "nobody waits for the dead";
}

TEST_F(LeaderTest, WorkerGoesOnIfItsLeaderDies) {
  window_ = 1;
  start_workers(2, "leader:every=1,group=2,pull=0.5", 3);
  losses_ = {{0, 2}, {1, 1}};
  step_all(1);
  write(0, 2);
  deliver(1);  // the report, and the request of the first range
  EXPECT_EQ(in_flight<LeaderReply>(1, 0), 1);
  deliver(0);
  EXPECT_EQ(sum(0, 0), 6.5) << "2 + (11 - 2) / 2";
  EXPECT_EQ(written_[0], 1);
  kill(1);
  EXPECT_EQ(written_[0], 2);
  EXPECT_EQ(sum(0, 1), 2);
  step_all(3);
  EXPECT_EQ(written_[0], 3);
}

TEST_F(LeaderTest, WorkerThatJoinsGetsACopy) {
  start_workers(2, "leader:every=1,group=2", 2);
  step_all(1);
  add(2);
  adopt_all();
  read(2, 1);
  EXPECT_EQ(reads_.count(2), 0U);
  deliver_all();
  EXPECT_EQ(reads_[2], 1) << "that of worker 0";
  EXPECT_EQ(exchange(2).progress().size(), 2U) << "and what it knows";
}

TEST_F(LeaderTest, LeavesOnceAllKnowItsLastStep) {
  start_workers(3, "leader:every=4,group=1,global_every=8");
  write(1, 1);
  end(1, 1);
  EXPECT_FALSE(exchange(1).may_leave());
  deliver(0);
  deliver(1);
  EXPECT_FALSE(exchange(1).may_leave());
  add(3);
  adopt_all();
  deliver_all();
  EXPECT_TRUE(exchange(1).may_leave());
  for (const MemberId id : {0, 2, 3})
    EXPECT_EQ(exchange(id).progress().at(0), (WorkerProgress{{1, 1}, 1, 1})) << id;
  EXPECT_EQ(written_[1], 1) << "the worker has not asked for this";
}

TEST_F(LeaderTest, NobodyFollowsAWorkerThatHasEnded) {
  start_workers(2, "leader:every=1,group=2");
  losses_ = {{0, 2}, {1, 1}};
  step_all(1);
  end(1, 1);
  deliver_all();
  write(0, 2);
  EXPECT_EQ(exchange(0).leader(), std::nullopt);
}

TEST_F(LeaderTest, WorkerThatJoinsGetsTheReportThatIsAwaited) {
  start_workers(2, "leader:every=2,group=1,global_every=4");
  for (Step s = 1; s <= 4; ++s) write(0, s);
  add(2);
  adopt_all();
  read(2, 0);
  deliver_all();
  EXPECT_EQ(written_[0], 4);
  EXPECT_EQ(exchange(0).reported_to_all(), 4U);
  const auto known = exchange(2).progress();
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].step, 4U);
}

/// From the eighth sample on, the rate is a hundredth.
TEST_F(LeaderTest, ScheduleAssumesThatOthersGoOn) {
  applier_ = gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = 1},
       .schedule = models::parse_schedule("step:every=8,gamma=0.01").value(),
       .batch = 1});
  start_of_.clear();
  start_workers(2, "leader:every=8,group=2");
  for (Step s = 1; s <= 3; ++s) write(0, s);
  EXPECT_EQ(sum(0), -3);
  write(0, 4);
  EXPECT_NEAR(sum(0), -3.01, 1e-12) << "8 samples with those that the other has made";
  EXPECT_EQ(exchange(0).state(0).samples, 4U) << "a checkpoint has the samples that are known";
  add(2);
  adopt_all();
  for (Step s = 5; s <= 6; ++s) write(0, s);  // with 14 samples; from the 16th on, less is added
  EXPECT_NEAR(sum(0), -3.03, 1e-12) << "a worker that joins has no samples before";
}

TEST_F(LeaderTest, StepWithoutALossFails) {
  start_workers(2, "leader");
  run(0, [&](auto& e, const auto& c) { e.write(c, {1, Update{.parts = {}, .samples = 1}, 1}); });
  EXPECT_NE(failure_.find("worker 0 has no loss in step 1"), std::string::npos) << failure_;
  EXPECT_EQ(written_[0], 0);
}

/// The loss (x^2 - 1)^2 / 4 has a maximum at 0 between two minima. Each worker begins on one side
/// of it, at the same distance and so with the same loss. Elastic averaging ends at the maximum
/// (elastic_test.cpp).
TEST_F(LeaderTest, LeavesTheTopOfASymmetricDoubleWell) {
  applier_ = gradient_applier<double>({.optimizer = models::Sgd{.lr = 0.1}, .schedule = {}});
  start_of_ = {{0, 0.5}, {1, -0.5}};
  start_workers(2, "leader:every=1,group=2,pull=0.3");
  for (Step s = 1; s <= 200; ++s) {
    for (MemberId id = 0; id < 2; ++id) {
      const double x = sum(id);
      losses_[id] = (x * x - 1) * (x * x - 1) / 4;
      write(id, s, x * x * x - x);
    }
    deliver_all();
  }
  EXPECT_NEAR(sum(0), 1, 1e-3);
  EXPECT_NEAR(sum(1), 1, 1e-3) << "follows worker 0 over the maximum";
}

/// Workers join, end and die at any message. All that are left go on, no copy goes beyond those
/// that there were, and in the end all know the last steps of those that have ended.
TEST_F(LeaderTest, AllGoOnWhileWorkersJoinEndAndDie) {
  constexpr std::uint64_t seeds = seeds_to_run(400);
  int deaths_in_moves = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    random_ = Random{seed};
    const std::size_t ranges = 1 + seed % 3;
    const Step every = 1 + seed % 3;
    start_workers(static_cast<MemberId>(1 + random_.below(5)),
                  "leader:every=" + std::to_string(every) +
                      ",group=" + std::to_string(1 + random_.below(3)) +
                      ",pull=0.4,global_every=" + std::to_string(2 * every),
                  ranges);
    std::map<MemberId, Step> steps;
    std::map<MemberId, Step> ended;
    std::set<MemberId> joining;
    for (const Member& member : configuration_.members) steps[member.id] = 0;
    MemberId joiner = 10;
    const auto highest = [&] {
      double most = 0;
      for (const auto& [id, e] : exchanges_)
        for (RangeId r = 0; r < ranges; ++r)
          if (e.has_copy(r)) most = std::max(most, e.copy<double>(r)[0]);
      return most;
    };
    double most = highest();
    for (int event = 0; event < 300; ++event) {
      const MemberId id = configuration_.members[random_.below(configuration_.members.size())].id;
      if (reads_.contains(id)) joining.erase(id);
      losses_[id] = random_.real();
      const bool is_idle = !joining.contains(id) && !ended.contains(id) &&
                           written_[id] == static_cast<int>(steps[id]);
      const std::uint64_t choice = random_.below(40);
      if (choice == 0 && configuration_.members.size() < 7) {
        add(joiner);
        adopt_all();
        steps[joiner] = 0;
        read(joiner, 0);
        joining.insert(joiner++);
      } else if (choice == 1 && configuration_.members.size() > joining.size() + 1) {
        for (const auto& [other, e] : exchanges_)
          deaths_in_moves += e.leader() == MemberIncarnation{id, 1} ? 1 : 0;
        joining.erase(id);
        kill(id);
        exchanges_.erase(id);
      } else if (choice == 2 && is_idle) {
        end(id, steps[id]);
        ended[id] = steps[id];
      } else if (choice < 20 && is_idle) {
        write(id, ++steps[id]);
        most = std::max(most, highest());
      } else if (!in_flight_.empty()) {
        deliver_first(random_.below(in_flight_.size()));
      }
      ASSERT_LE(highest(), most + 1e-9) << "a move goes no further than the leader";
    }
    deliver_all();
    for (const Member& member : configuration_.members) {
      EXPECT_EQ(written_[member.id], static_cast<int>(steps[member.id])) << member.id;
      EXPECT_EQ(exchange(member.id).may_leave(), ended.contains(member.id));
      for (RangeId r = 0; r < ranges; ++r) EXPECT_GE(sum(member.id, r), 0);
      const auto known = exchange(member.id).progress();
      for (const auto& [worker, step] : ended) {
        const bool is_present = std::ranges::count(configuration_.members, worker, &Member::id) > 0;
        const bool is_known =
            std::ranges::any_of(known, [&, id = worker, at = step](const auto& p) {
              return p.worker.id == id && p.step == at;
            });
        EXPECT_TRUE(!is_present || step == 0 || is_known) << worker;
      }
    }
    ASSERT_EQ(failure_, "");
  }
  EXPECT_GT(deaths_in_moves, static_cast<int>(seeds / 20));
}

TEST_F(LeaderTest, RefusesMessagesThatNoCorrectMemberSends) {
  start_workers(3, "leader");
  const ExchangeScope scope{{configuration_, 1, 8}, *layout_, sizeof(double)};
  EXPECT_TRUE(is_valid(scope, LossReport{1, 1, 0.5}));
  EXPECT_TRUE(is_valid(scope, LossReport{1, 1, std::nullopt}));
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(is_valid(scope, LossReport{1, 1, loss}));
  EXPECT_FALSE(is_valid(scope, LossReport{barrier::finished, 1, 0.5}));
  EXPECT_FALSE(is_valid(scope, LossReport{1, barrier::finished, 0.5}));
  EXPECT_FALSE(is_valid(scope, LossReceived{barrier::finished}));
  EXPECT_FALSE(is_valid(scope, LeaderRequest{1, 1}));
  EXPECT_FALSE(is_valid(scope, LeaderRequest{0, barrier::finished}));
  const auto values = Buffer::make<double>(2);
  EXPECT_TRUE(is_valid(scope, LeaderReply{0, 1, {}}));
  EXPECT_TRUE(is_valid(scope, LeaderReply{0, 1, {values, 0, 1, nullptr}}));
  EXPECT_FALSE(is_valid(scope, LeaderReply{0, 1, {values, 0, 2, nullptr}}));
  EXPECT_FALSE(is_valid(scope, LeaderReply{1, 1, {}}));
  configuration_.members[1].works = false;
  EXPECT_FALSE(is_valid(scope, LossReport{1, 1, 0.5})) << "the sender does not work";
}

TEST(LeaderArguments, AreChecked) {
  EXPECT_EQ(parse_leader("leader").value(), LeaderSettings{});
  EXPECT_EQ(parse_leader("leader:every=2,pull=0.5").value(), (LeaderSettings{2, 4, 0.5, 8, 0.5}));
  EXPECT_EQ(message_of(check_exchange("leader:every=1000000,group=1,pull=1,global_every=3000000")),
            "");
  const std::map<std::string, std::string> bad{{"every=0", "every=0"},
                                               {"every=1000001", "1000000"},
                                               {"group=0", "group=0"},
                                               {"pull=0", "up to 1"},
                                               {"pull=1.1", "1.1"},
                                               {"global_pull=0", "up to 1"},
                                               {"pull=nan", "nan"},
                                               {"every=4,global_every=6", "8"},
                                               {"global_every=0", "global_every=0"},
                                               {"evry=2", "every"},
                                               {"2", "2"}};
  for (const auto& [argument, text] : bad) {
    const std::string error = message_of(check_exchange("leader:" + argument));
    EXPECT_NE(error.find("exchange: leader"), std::string::npos) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace starling::core
