/// Tests that exchanges in the simulation of steps take the times, and send the bytes, that their
/// definitions say.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "starling/engine/sim/steps/steps.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Mode;

/// A tensor of 1 MB at 1 GB/s takes 1 ms at a port; a step takes 10 ms, a message 1 ms besides.
StepOptions job(const std::string& exchange, std::size_t workers, const char* barrier,
                Mode mode = Mode::peer) {
  StepOptions options;
  options.workers = workers;
  options.barrier = barrier::parse(barrier).value();
  options.mode = mode;
  options.recheck = core::default_recheck(mode);
  options.step_time = Distribution{laws::Constant{10ms}};
  options.exchange = ExchangeStepOptions{.name = exchange,
                                         .bytes = 1e6,
                                         .latency = Distribution{laws::Constant{1ms}},
                                         .bytes_per_second = 1e9};
  options.steps_max = 24;
  options.horizon = 1h;
  return options;
}

double ms(Time time) { return static_cast<double>(time.count()) / 1e6; }
double elapsed_ms(const StepOptions& options) { return ms(simulate(options).elapsed); }

// --- sums ---------------------------------------------------------------------------------------

TEST(ExchangeStepsTest, SumsAddToTheTimeOfAStep) {
  const double ring = 2 * 7 * (1 + 1.0 / 8);
  EXPECT_NEAR(elapsed_ms(job("allreduce:ring", 8, "bsp")), 24 * (10 + ring), 1e-3);
  const double halving = 2 * (3 + 7.0 / 8);
  EXPECT_NEAR(elapsed_ms(job("allreduce:halving", 8, "bsp")), 24 * (10 + halving), 1e-3);
}

/// HPSGD: the time of a step is the longer of computing and summing. The first step has no sum
/// before it, and the last one counts before its sum is complete.
TEST(ExchangeStepsTest, OverlappedSumsTakeTheLongerTime) {
  auto computing = job("allreduce:ring,overlap", 8, "bsp");
  computing.step_time = Distribution{laws::Constant{100ms}};
  EXPECT_NEAR(elapsed_ms(computing), 24 * 100, 1e-3);
  const double ring = 2 * 7 * (1 + 1.0 / 8);
  EXPECT_NEAR(elapsed_ms(job("allreduce:ring,overlap", 8, "bsp")), 10 + 23 * ring, 1e-3);
}

/// The sum of a bucket takes 14 (1 + 1/32) ms. The first one begins after half of the step (a
/// third, and a quarter of the rest), and the others once the one before is complete and their
/// parts are there.
TEST(ExchangeStepsTest, BucketsAreSummedWhileOthersAreComputed) {
  const double bucket = 2 * 7 * (1 + 1.0 / 8 / 4);
  EXPECT_NEAR(elapsed_ms(job("allreduce:ring,buckets=4", 8, "bsp")), 24 * (5 + 4 * bucket), 1e-3);
  auto computing = job("allreduce:ring,buckets=4", 8, "bsp");
  computing.step_time = Distribution{laws::Constant{120ms}};
  EXPECT_NEAR(elapsed_ms(computing), 24 * (120 + bucket), 1e-3);
  const auto all = simulate(computing);
  const auto one = simulate(job("allreduce:ring,buckets=1", 8, "bsp"));
  EXPECT_NEAR(all.exchange->bytes, one.exchange->bytes, 1);
  EXPECT_EQ(all.exchange->messages, 4 * one.exchange->messages);
}

/// Each step waits for its slowest worker, and no other one.
TEST(ExchangeStepsTest, SumsWaitForTheSlowestWorker) {
  auto options = job("allreduce:tree", 4, "bsp");
  options.slowness = {1, 1, 3, 1};
  // Worker 2 sends to the root, which sends to it; its child has the last sum a round later. The
  // child has sent to it long before.
  const auto result = simulate(options);
  EXPECT_NEAR(ms(result.elapsed), 24 * (30 + 2.0 * 2) + 2, 1e-3);
  EXPECT_NEAR(ms(*result.exchange->longest_sum), 6, 1e-3);
  // The others wait for 20 ms of each step of worker 2.
  EXPECT_NEAR(result.waiting_share, result.exchange->waiting_share, 1e-9);
  EXPECT_GT(result.waiting_share, 0.5);
}

TEST(ExchangeStepsTest, AverageSendsAnEveryThOfAllreduce) {
  const auto all = simulate(job("average:every=1", 16, "bsp"));
  const auto some = simulate(job("average:every=6", 16, "bsp"));
  EXPECT_NEAR(all.exchange->bytes, 6 * some.exchange->bytes, 1);
  EXPECT_EQ(all.exchange->messages, 6 * some.exchange->messages);
  const double sum = ms(*all.exchange->longest_sum);
  EXPECT_NEAR(ms(all.elapsed), 24 * (10 + sum), 1e-3);
  EXPECT_NEAR(ms(some.elapsed), 24 * 10 + 4 * sum, 1e-3);
}

TEST(ExchangeStepsTest, SendsTwiceTheVectorInARing) {
  const auto result = simulate(job("allreduce:ring", 1000, "bsp"));
  EXPECT_NEAR(result.exchange->bytes, 24.0 * 2 * 999 * 1e6, 1);
  EXPECT_EQ(result.exchange->messages, 24U * 2 * 999 * 1000);
}

// --- gossip -------------------------------------------------------------------------------------

/// Without a lag, a step counts once the other worker has said that it has the message.
TEST(ExchangeStepsTest, GossipOverlapsWithStepsIfItLags) {
  EXPECT_NEAR(elapsed_ms(job("gossip:ring", 8, "asp")), 24 * (10 + 3), 1e-3);
  EXPECT_NEAR(elapsed_ms(job("gossip:ring,lag=1", 8, "asp")), 24 * 10, 1e-3);
}

TEST(ExchangeStepsTest, GossipSendsAsMuchHoweverManyWorkers) {
  for (const char* graph : {"gossip:exponential", "gossip:ring", "gossip:exponential,lag=2"})
    for (const std::size_t workers : {8U, 100U, 10000U}) {
      const auto result = simulate(job(graph, workers, "asp"));
      EXPECT_NEAR(result.exchange->bytes, 24e6 * static_cast<double>(workers), 1) << graph;
      EXPECT_EQ(*result.exchange->longest_message, 2ms) << graph;
    }
}

/// Workers of very different speeds under every kind of barrier, with latencies that vary.
TEST(ExchangeStepsTest, GossipKeepsTheWeight) {
  for (const char* graph :
       {"gossip:exponential", "gossip:ring,lag=1", "gossip:random", "gossip:random,lag=3"})
    for (const char* barrier : {"asp", "pssp:s=2,beta=3", "pbsp:beta=4"}) {
      auto options = job(graph, 64, barrier);
      options.step_time = Distribution{laws::Exponential{10ms}};
      options.exchange->latency = Distribution{laws::Exponential{3ms}};
      options.slowness.assign(64, 1);
      options.slowness[5] = 8;
      options.horizon = 500ms;
      const auto result = simulate(options);
      EXPECT_NEAR(*result.exchange->weight, 64, 1e-9) << graph << " " << barrier;
      EXPECT_LT(*result.exchange->mixing_error, 0.5) << graph << " " << barrier;
    }
}

/// SGP, appendix A: log2 n steps average exactly, if no worker is ahead of its messages.
TEST(ExchangeStepsTest, ExponentialGraphAveragesExactly) {
  auto options = job("gossip:exponential", 64, "asp");
  options.steps_max = 6;
  EXPECT_LT(*simulate(options).exchange->mixing_error, 1e-12);
  options.steps_max = 5;
  EXPECT_GT(*simulate(options).exchange->mixing_error, 0.01);
}

/// Two of three workers that draw the same one wait for its port.
TEST(ExchangeStepsTest, ReceiversTakeOneMessageAtATime) {
  auto options = job("gossip:random", 50, "asp");
  options.steps_max = 1;
  const auto longest = *simulate(options).exchange->longest_message;
  EXPECT_GE(longest, 3ms);
  EXPECT_EQ((longest - 1ms) % 1ms, Time{0});
}

// --- owners, elastic, leader --------------------------------------------------------------------

/// All workers wait for the port of one server: it sends the model to one after another, and then
/// takes their pushes one after another.
TEST(ExchangeStepsTest, OneServerIsABottleneck) {
  auto options = job("owners", 20, "asp", Mode::central);
  options.steps_max = 1;
  // A request, 20 replies, 10 ms of the last worker, its push, and the answer.
  EXPECT_NEAR(elapsed_ms(options), 1 + 20 + 1 + 10 + 2 + 1, 1e-3);
  options.exchange->servers = 20;
  // Each server sends a twentieth to each worker. All answer the last worker last, so its port
  // takes nothing until 19 / 20 ms after the first one's.
  EXPECT_NEAR(elapsed_ms(options), 1 + 0.95 + (1 + 1) + 10 + (1 + 1) + 1, 1e-3);
  EXPECT_NEAR(simulate(options).exchange->bytes, 2 * 20e6, 1);
}

/// A worker that passes by a notice may have a timer left that is due while it reads the model.
TEST(ExchangeStepsTest, WorkersWaitForTheExchangeForPartOfTheTimeOnly) {
  auto options = job("owners", 8, "pssp:s=4,beta=2");
  options.step_time = Distribution{laws::Exponential{100ms}};
  options.horizon = 40s;
  options.steps_max = barrier::finished;
  options.recheck = barrier::parse_recheck("notify").value();
  const double share = simulate(options).exchange->waiting_share;
  options.recheck = barrier::parse_recheck("notify+interval:5ms").value();
  const double with_timers = simulate(options).exchange->waiting_share;
  EXPECT_LT(with_timers, 1);
  EXPECT_NEAR(with_timers, share, 0.05);
}

TEST(ExchangeStepsTest, PeersOwnEqualParts) {
  auto options = job("owners", 10, "asp");
  EXPECT_NEAR(simulate(options).exchange->bytes, 24.0 * 10 * 2 * 0.9e6, 1);
}

TEST(ExchangeStepsTest, ElasticPullsAndPushesEveryFewSteps) {
  const auto result = simulate(job("elastic:every=8", 10, "asp", Mode::central));
  EXPECT_NEAR(result.exchange->bytes, 3.0 * 10 * 2e6, 1);
  EXPECT_EQ(result.exchange->messages, 3U * 10 * 2);
}

/// In a group of 4, 3 copy the model of the one that leads; among all 16, 15 do.
TEST(ExchangeStepsTest, LeadersSendTheirModels) {
  const auto result = simulate(job("leader:every=4,group=4,global_every=8", 16, "asp"));
  EXPECT_EQ(result.exchange->messages, 3U * (4 * 3 + 15));
  EXPECT_EQ(*result.exchange->longest_message, 2ms);
}

// --- all ----------------------------------------------------------------------------------------

TEST(ExchangeStepsTest, SameSeedGivesTheSameResult) {
  for (const char* exchange : {"gossip:random,lag=1", "allreduce:ring,overlap", "owners",
                               "leader:every=2", "average:every=3", "elastic:every=2"}) {
    const bool is_sum = std::string{exchange}.starts_with("a");
    auto options = job(exchange, 30, is_sum ? "bsp" : "pssp:s=3,beta=2");
    options.step_time = Distribution{laws::Exponential{10ms}};
    const auto first = simulate(options);
    EXPECT_EQ(first, simulate(options)) << exchange;
    options.seed = 2;
    EXPECT_NE(first.elapsed, simulate(options).elapsed) << exchange;
  }
}

TEST(ExchangeStepsTest, ALoneWorkerSendsNothing) {
  for (const char* exchange : {"gossip", "allreduce", "owners", "average", "leader"}) {
    const auto result = simulate(job(exchange, 1, exchange[0] == 'a' ? "bsp" : "asp"));
    EXPECT_EQ(result.elapsed, 240ms) << exchange;
    EXPECT_EQ(result.exchange->bytes, 0) << exchange;
  }
}

TEST(ExchangeStepsTest, RefusesTheImpossible) {
  const auto refused = [](const StepOptions& options) {
    const auto valid = check(options);
    return valid ? std::string{"valid"} : valid.error().message;
  };
  EXPECT_EQ(refused(job("gossip:star", 8, "asp")),
            "exchange: gossip: 'star' is unknown; valid: exponential, ring, "
            "random, lag=1");
  EXPECT_EQ(refused(job("broadcast", 8, "asp")),
            "exchange broadcast: every worker sends to all others, which the step level does not "
            "simulate; valid: --level protocol, or exchange owners, gossip, allreduce, average, "
            "elastic or leader");
  EXPECT_EQ(refused(job("allreduce:ring", 8, "asp")),
            "barrier asp: exchange allreduce:ring itself makes all workers wait for each other, as "
            "barrier bsp does; valid: barrier bsp, or another exchange");
  EXPECT_EQ(refused(job("allreduce:bcube:k=2", 8, "bsp")),
            "exchange allreduce:bcube:k=2: bcube:k=2: 8 members do not fill a cube of k=2; valid: "
            "1, 2^2, 3^2, 4^2, ...");
  EXPECT_EQ(refused(job("owners", 10000, "asp")),
            "exchange owners: 10000 workers and 10000 owners send each other too many messages in "
            "each step; valid: mode central with shards up to 419, or exchange gossip");
  auto options = job("average:every=2", 8, "bsp");
  options.exchange->latency = Distribution{laws::Exponential{1ms}};
  EXPECT_EQ(
      refused(options),
      "latency: exp:1ms varies, and at the step level exchange average:every=2 needs the "
      "same latency for all messages; valid: const:50us, --level protocol, or exchange gossip");
  options = job("gossip", 8, "asp");
  options.exchange->bytes = 0;
  EXPECT_EQ(refused(options), "bytes: 0; valid: a size above 0");
  options.exchange->bytes = 1;
  options.exchange->bytes_per_second = -1;
  EXPECT_EQ(refused(options), "bandwidth: -1; valid: bytes a second, 0 for no limit");
  options = job("owners", 8, "asp", Mode::central);
  options.exchange->servers = 0;
  EXPECT_EQ(refused(options), "shards: 0; valid: 1 or more");
  options = job("gossip", 2, "asp");
  options.absences = {{1ms, 2ms}, {}};
  EXPECT_EQ(refused(options),
            "straggler: a worker that is away would answer no message, and exchanges are simulated "
            "without such workers; valid: a slow one, as 5%:4x, or --level protocol");
}

}  // namespace
}  // namespace starling::sim
