/// Tests that simulated jobs with replicas survive the random faults of 2,000 seeds, and that these
/// runs are reproducible and contain all kinds of faults.
#include "starling/engine/sim/chaos/chaos.hpp"

#include <gtest/gtest.h>

#include "tests/engine/sim/chaos/run_text.hpp"
#include "tests/sanitized.hpp"

namespace starling::sim {
namespace {

constexpr std::uint64_t seeds_per_case = sanitized ? 8 : 100;

class Chaos : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Chaos, KeepsAllInvariantsAndFinishes) {
  const std::uint64_t first = GetParam() * 100;
  for (std::uint64_t seed = first; seed < first + seeds_per_case; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const ChaosReport report = run_chaos(scenario);
    ASSERT_EQ(report.violation, "") << "seed " << seed << "\n" << print(scenario);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range<std::uint64_t>(0, 20));

TEST(ChaosRun, IsAFunctionOfItsScenario) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto first = run_chaos(draw_scenario(seed));
    const auto second = run_chaos(draw_scenario(seed));
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.end, second.end);
    EXPECT_EQ(first.epochs, second.epochs);
  }
}

TEST(ChaosRun, SeedsCoverEveryKindOfFaultAndEveryMode) {
  std::array<std::uint64_t, Fault::kinds> faults{};
  std::array<int, 3> modes{};
  std::uint64_t passes = 0;
  std::uint64_t epochs = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    const auto report = run_chaos(scenario);
    ++modes[static_cast<std::size_t>(scenario.mode)];
    for (std::size_t kind = 0; kind < Fault::kinds; ++kind) faults[kind] += report.faults[kind];
    passes += report.passes;
    epochs += report.epochs;
  }
  for (std::size_t kind = 0; kind < Fault::kinds; ++kind)
    EXPECT_GT(faults[kind], 0U) << name(static_cast<Fault::Kind>(kind));
  for (const int count : modes) EXPECT_GT(count, 0);
  EXPECT_GT(passes, 60U);
  EXPECT_GT(epochs, 120U);
}

/// Seeds that found faults in the dealing of samples, in the council, or in the checker.
TEST(ChaosRun, SeedsThatFoundFaultsPass) {
  for (const std::uint64_t seed : {3473U, 4617U, 13916U, 26685U, 30503U, 32817U})
    EXPECT_EQ(run_chaos(draw_scenario(seed)).violation, "") << "seed " << seed;
}

/// Node 5 is to leave, and gives up behind a partition that lasts 11 s, while the job goes on.
TEST(ChaosRun, LeaverThatGivesUpCountsAsGone) {
  const auto report = run_text(R"(seed 79
mode peer
exchange owners
cache no
barrier asp
recheck interval:5ms
workers 10
servers 0
ranges 5
copies 2
steps 18
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 4
beyond yes
fault crash:at=35630us,node=6,after=0
fault pair-partition:at=40079us,node=0,other=4,ways=2,lasts=75057us
fault suspect:at=43298us,node=6,lasts=92735us
fault partition:at=60563us,group=544,lasts=11237271us
fault leave:at=64162us,node=5
fault crash:at=73782us,node=6,after=0
fault crash:at=121492us,node=3,after=0
fault crash:at=134160us,node=6,after=0
fault freeze:at=196423us,node=4,lasts=95104us
fault suspect:at=201630us,node=4,lasts=97517us
fault pair-partition:at=201901us,node=6,other=5,ways=1,lasts=952622us
fault join:at=205290us,node=10
faults 12
)");
  EXPECT_EQ(report.violation, "");
}

/// Nodes 0, 1, 2, 5, 6 and 7 acknowledge nothing for half a second. So the answer of worker 8, that
/// it has not begun, waits at its sender behind other messages, and is sent when it has.
TEST(ChaosRun, LateAnswerOfAWorkerThatHadNotBegunIsNoViolation) {
  const auto report = run_text(R"(seed 44189
mode peer
exchange broadcast
cache no
barrier tuned:staleness=1
recheck notify+interval:auto
workers 8
servers 0
ranges 4
copies 2
steps 11
loss 0
duplication 0
reordering 0
latency 1ms
compute 5ms
straggling 4
beyond no
fault suspect:at=8980us,node=5,lasts=58357us
fault join:at=96151us,node=8
fault one-way-partition:at=103984us,group=231,lasts=543342us
faults 3
)");
  EXPECT_EQ(report.violation, "");
}

/// Worker 2 is cut off from workers that it draws, so that a question waits at its sender. Its rule
/// lets it pass without the answer.
TEST(ChaosRun, QuestionThatWaitsAtItsSenderIsNoViolation) {
  const auto report = run_text(R"(seed 19184
mode peer
exchange broadcast
cache no
barrier psoon:beta=3
recheck notify
workers 14
servers 0
ranges 5
copies 2
steps 11
loss 0
duplication 0.05
reordering 0.12
latency 1ms
compute 5ms
straggling 1
beyond no
fault pair-partition:at=23510us,node=12,other=4,ways=1,lasts=79848us
fault partition:at=29961us,group=1040,lasts=34295us
fault partition:at=103169us,group=669,lasts=765555us
fault crash:at=141537us,node=1,after=4
fault join:at=155871us,node=14
faults 5
)");
  EXPECT_EQ(report.violation, "");
}

/// Worker 0 makes a step, answers that it has, and learns in the same event that it is excluded.
TEST(ChaosRun, LastStepOfAnExcludedWorkerIsNoViolation) {
  const auto report = run_text(R"(seed 260078
mode peer
exchange broadcast
cache no
barrier pssp:s=3,beta=1
recheck notify
workers 5
servers 0
ranges 5
copies 2
steps 15
loss 0.11
duplication 0.09
reordering 0.01
latency 1ms
compute 5ms
straggling 1
beyond no
fault suspect:at=78557us,node=3,lasts=379689us
fault leave:at=119472us,node=4
fault crash:at=131916us,node=1,lasts=1080819us,after=2
fault suspect:at=184555us,node=0,lasts=659285us
faults 4
)");
  EXPECT_EQ(report.violation, "");
}

/// Worker 0 deals, and is excluded. If it began the new deal at once, its update would reach worker
/// 2 before the deal does, and all others would adopt the configuration without it meanwhile.
TEST(ChaosRun, DealBeginsWhenAllKnowIt) {
  const auto report = run_text(R"(seed 313041
mode peer
exchange broadcast
cache no
barrier asp
recheck notify
workers 5
servers 0
ranges 1
copies 2
steps 12
loss 0.04
duplication 0.13
reordering 0.1
latency 1ms
compute 5ms
straggling 1
beyond no
fault suspect:at=59692us,node=0,lasts=82600us
faults 1
)");
  EXPECT_EQ(report.violation, "");
}

/// All that know the present deal leave, node 2 last, while node 4 joins again. Node 4 must learn
/// the deal before node 2 is gone; otherwise it deals samples again that were taken.
TEST(ChaosRun, LastMemberThatKnowsTheDealStaysUntilAnotherDoes) {
  const auto report = run_text(R"(seed 8364
mode peer
exchange broadcast
cache no
barrier tuned:progress
recheck interval:auto
workers 5
servers 0
ranges 4
copies 2
steps 14
loss 0.13
duplication 0.13
reordering 0.2
latency 1ms
compute 5ms
straggling 4
beyond no
fault suspect:at=67893us,node=4,lasts=1197377us
fault leave:at=107839us,node=0
fault partition:at=113610us,group=4,lasts=29624us
fault leave:at=162860us,node=3
fault suspect:at=210798us,node=3,lasts=87067us
fault pair-partition:at=212370us,node=0,other=1,ways=2,lasts=1172521us
fault leave:at=214983us,node=2
faults 7
)");
  EXPECT_EQ(report.violation, "");
}

TEST(ChaosRun, JobWithoutFaultsMakesAllItsSteps) {
  Scenario scenario;
  scenario.seed = 2;  // the workers of odd seeds end after epochs
  scenario.steps = 7;
  scenario.barrier = barrier::sampled(barrier::Ssp{2}, 2);
  const auto report = run_chaos(scenario);
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.steps, 5U * 7U);
  EXPECT_EQ(report.epochs, 1U);
}

/// The scenario combines the largest values that are valid together: a longer latency is refused.
TEST(ChaosRun, FinishesTheSlowestValidScenario) {
  for (const core::Mode mode : {core::Mode::peer, core::Mode::hybrid, core::Mode::central}) {
    Scenario scenario;
    scenario.mode = mode;
    scenario.workers = 19;
    scenario.servers = core::has_servers(mode) ? 4 : 0;
    scenario.barrier = mode == core::Mode::central ? barrier::Barrier{barrier::Bsp{}, {}}
                                                   : barrier::sampled(barrier::Bsp{}, 3);
    scenario.steps = 30;
    scenario.ranges = 16;
    scenario.replication_factor = 4;
    scenario.loss = scenario.duplication = scenario.reordering = 0.3;
    scenario.latency = std::chrono::milliseconds{2};
    scenario.compute = std::chrono::milliseconds{100};
    scenario.straggling = 5;
    ASSERT_TRUE(parse_scenario(print(scenario)));
    if (!sanitized || mode == core::Mode::hybrid) {  // it has both owners and gates
      EXPECT_EQ(run_chaos(scenario).violation, "") << core::print(mode);
    }
    scenario.latency += scenario.latency;
    EXPECT_FALSE(parse_scenario(print(scenario)));
  }
}

TEST(ChaosRun, LosingAllReplicasOfARangeEndsTheJob) {
  Scenario scenario;
  scenario.barrier = barrier::sampled(barrier::Ssp{2}, 2);
  scenario.ranges = 1;
  scenario.exceeds_fault_budget = true;
  for (const NodeId owner : {0U, 1U})
    scenario.faults.push_back(
        {.kind = Fault::Kind::crash, .node = owner, .at = std::chrono::milliseconds{20}});
  const auto report = run_chaos(scenario);
  EXPECT_EQ(report.violation, "");
  EXPECT_TRUE(report.gave_up);
}

/// Notes when node 2 received its last packet before 650 ms.
class LastArrival : public Sabotage {
 public:
  bool on_arrival(ChaosWorld& world, core::Envelope& envelope) override {
    if (envelope.to == 2 && world.now() < 650ms) at = world.now();
    return true;
  }
  Time at{};
};

TEST(Chaos, FreezesThatOverlapLastUntilTheLaterEnd) {
  Scenario scenario;
  scenario.barrier = barrier::parse("pssp:s=2,beta=2").value();
  scenario.compute = 40ms;
  scenario.steps = 30;
  scenario.faults = {{.kind = Fault::Kind::freeze, .node = 2, .at = 100ms, .lasts = 60ms},
                     {.kind = Fault::Kind::freeze, .node = 2, .at = 150ms, .lasts = 500ms}};
  LastArrival last;
  EXPECT_EQ(run_chaos(scenario, &last).violation, "");
  EXPECT_LE(last.at, 100ms);
}

/// The slowest job that a scenario file may describe. An odd seed ends it by epochs, an even one
/// by steps.
TEST(Chaos, JobsAtTheLimitsOfScenariosFinish) {
  Scenario slow;
  slow.ranges = 16;
  slow.steps = 30;
  slow.loss = slow.duplication = slow.reordering = 0.3;
  slow.latency = 2ms;
  slow.compute = 100ms;
  slow.straggling = 5;

  Scenario peers = slow;
  peers.workers = 24;
  peers.barrier = barrier::parse("pbsp:beta=3").value();

  Scenario central = slow;
  central.mode = core::Mode::central;
  central.barrier = barrier::parse("bsp").value();
  central.workers = 1;
  central.servers = central.replication_factor = 4;

  for (Scenario scenario : {peers, central})
    for (scenario.seed = 12; scenario.seed < 14; ++scenario.seed)
      EXPECT_EQ(run_chaos(scenario).violation, "") << print(scenario);
}

}  // namespace
}  // namespace starling::sim
