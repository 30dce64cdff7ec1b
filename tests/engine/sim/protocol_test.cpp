/// Tests invariants of whole jobs over good and hostile networks: seeded runs of jobs whose
/// parameters count updates.
#include "starling/engine/sim/protocol/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/sim/counting.hpp"
#include "tests/sanitized.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Mode;
using core::RangeId;

struct ProtocolCase {
  Mode mode;
  const char* barrier;
  const char* recheck;
  const char* exchange = "owners";
  bool cache = false;
};

void PrintTo(const ProtocolCase& c, std::ostream* out) {
  *out << core::print(c.mode) << " " << c.barrier << " " << c.recheck << " " << c.exchange
       << (c.cache ? " cache" : "");
}

class EveryJob : public testing::TestWithParam<ProtocolCase> {
 protected:
  static constexpr std::size_t worker_counts[] = {1, 2, 3, 5, 8};

  /// Returns the options of the run with this seed. A sample size above the number of other workers
  /// is reduced to that number.
  static ProtocolOptions options(std::uint64_t seed) {
    const auto [mode, text, recheck, exchange, cache] = GetParam();
    ProtocolOptions options = small_job();
    options.mode = mode;
    options.exchange = exchange;
    options.cache = cache;
    options.barrier = barrier::parse(text).value();
    options.recheck = barrier::parse_recheck(recheck).value();
    options.seed = seed;
    options.workers = worker_counts[seed % std::size(worker_counts)];
    options.slowness = first_is_slow(options.workers, 3);
    options.shards = 1 + seed % 3;
    if (options.barrier.sample)
      options.barrier.sample = std::min(*options.barrier.sample, options.workers - 1);
    EXPECT_TRUE(check(options));
    return options;
  }
};

TEST_P(EveryJob, FinishesWithEachUpdateAppliedOnceAndNoReadTooStale) {
  for (std::uint64_t seed = 0; seed < seeds_to_run(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingRun job{options(seed)};
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    for (MemberId w = 0; w < job->options().workers; ++w)
      EXPECT_EQ(job->worker(w).step(), job->options().steps);
  }
}

TEST_P(EveryJob, AppliesEachUpdateOnceIfStepsTouchOnlySomeRanges) {
  const Touches touches = [](MemberId worker, Step step, RangeId range) {
    return mix(mix(Step{worker} * 1000 + step) + range) % 3 == 0;
  };
  for (std::uint64_t seed = 0; seed < seeds_to_run(30); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingRun job{options(seed), 4, touches};
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(EveryJob, AppliesEachUpdateOnceIfItIsStopped) {
  for (std::uint64_t seed = 0; seed < seeds_to_run(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Without a coordinator, workers under bsp may end one round after others: its mean is over
    // less.
    const ProtocolOptions stopped = options(seed);
    const bool ends_together = stopped.mode == Mode::central || !barrier::is_bsp(stopped.barrier);
    CountingRun job{stopped, 3, nullptr, ends_together};
    Random random{seed};
    job->stop(Time{random.below(60'000'000)});
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

/// Adds random faults to a job: links are blocked in one direction, and members
/// freeze.
void make_hostile(CountingRun& job, std::uint64_t seed) {
  Random random{seed};
  const auto random_time = [&](std::uint64_t below) {
    return Time{static_cast<Time::rep>(random.below(below))};
  };
  const auto random_node = [&] { return static_cast<NodeId>(random.below(job->nodes())); };
  for (int i = 0; i < 8; ++i) {
    const NodeId from = random_node();
    const NodeId to = random_node();
    const Time start = random_time(300'000'000);
    job->at(start, [&job, from, to] { job->network().block(from, to); });
    job->at(start + random_time(100'000'000), [&job, from, to] { job->network().heal(from, to); });
  }
  for (int i = 0; i < 3; ++i) {
    const NodeId frozen = random_node();
    const Time start = random_time(300'000'000);
    job->freeze(frozen, start, random_time(60'000'000));
  }
}

/// Returns the options of links that lose a third of all packets, and delay and duplicate some.
LinkOptions hostile_link() {
  return {.latency = {laws::Exponential{1ms}},
          .loss = 0.3,
          .duplication = 0.1,
          .reordering = 0.1,
          .delay = {laws::Exponential{10ms}}};
}

TEST_P(EveryJob, AppliesEachUpdateOnceOverAHostileNetwork) {
  for (std::uint64_t seed = 0; seed < seeds_to_run(25); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions hostile = options(seed);
    hostile.link = hostile_link();
    CountingRun job{hostile};
    make_hostile(job, seed);
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    for (MemberId w = 0; w < hostile.workers; ++w) EXPECT_EQ(job->worker(w).step(), hostile.steps);
    EXPECT_GT(job->network().counts().lost + (hostile.workers == 1 ? 1 : 0), 0U);
  }
}

/// Lets members of a job on several nodes die: every second worker of a job with servers, and one
/// owner of a job with at least three.
void let_members_die(CountingRun& job, std::uint64_t seed, std::uint64_t until) {
  Random random{seed};
  const auto random_time = [&] { return Time{static_cast<Time::rep>(random.below(until))}; };
  const auto workers = static_cast<MemberId>(job->options().workers);
  if (core::has_servers(job->options().mode))
    for (MemberId w = 1; w < workers; w += 2) job->die(w, random_time());
  const auto first_owner = core::has_servers(job->options().mode) ? workers : 1;
  if (owner_count(job->options()) >= 3) job->die(first_owner, random_time());
}

TEST_P(EveryJob, GoesOnWithoutDeadMembers) {
  for (std::uint64_t seed = 0; seed < seeds_to_run(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions on_nodes = options(seed);
    on_nodes.channels = true;
    CountingRun job{on_nodes, 3, nullptr, false};
    let_members_die(job, seed, 80'000'000);
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(EveryJob, GoesOnWithoutDeadMembersOverAHostileNetwork) {
  for (std::uint64_t seed = 0; seed < seeds_to_run(20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions hostile = options(seed);
    hostile.link = hostile_link();
    CountingRun job{hostile, 3, nullptr, false};
    make_hostile(job, seed);
    let_members_die(job, seed, 200'000'000);
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(EveryJob, RepeatsItselfWithTheSameSeed) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ProtocolOptions same = options(seed);
    if (seed % 2 == 1) same.link = hostile_link();
    CountingRun one{same};
    CountingRun two{same};
    one.run();
    two.run();
    EXPECT_EQ(one.passes, two.passes);
    EXPECT_EQ(one->network().counts().sent, two->network().counts().sent);
    EXPECT_EQ(one->now(), two->now());
  }
}

const std::vector<ProtocolCase> server_cases{
    {Mode::central, "bsp", "arrival"},
    {Mode::central, "ssp:s=0", "arrival"},
    {Mode::central, "ssp:s=2", "arrival"},
    {Mode::central, "asp", "arrival"},
    {Mode::central, "pbsp:beta=2", "arrival"},
    {Mode::central, "pbsp:beta=7", "arrival"},
    {Mode::central, "pssp:s=2,beta=2", "notify"},
    {Mode::central, "pbsp:beta=2", "interval:2ms"},
    {Mode::central, "pssp:s=1,beta=7", "notify+interval:auto"},
    {Mode::hybrid, "asp", "notify"},
    {Mode::hybrid, "pbsp:beta=2", "notify"},
    {Mode::hybrid, "pbsp:beta=7", "notify+interval:auto"},
    {Mode::hybrid, "pssp:s=2,beta=2", "interval:2ms"},
};
const std::vector<ProtocolCase> peer_cases{
    {Mode::peer, "asp", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=1", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=7", "notify"},
    {Mode::peer, "pssp:s=2,beta=2", "notify+interval:auto"},
    {Mode::peer, "pssp:s=0,beta=3", "interval:auto"},
};
const std::vector<ProtocolCase> broadcast_cases{
    {Mode::peer, "asp", "notify", "broadcast"},
    {Mode::peer, "pbsp:beta=7", "notify+interval:auto", "broadcast"},
    {Mode::peer, "pssp:s=2,beta=2", "notify+interval:auto", "broadcast"},
};
const std::vector<ProtocolCase> allreduce_cases{
    {Mode::peer, "bsp", "notify", "allreduce"},
    {Mode::peer, "bsp", "notify", "allreduce:ring"},
    {Mode::peer, "bsp", "notify", "allreduce:overlap"},
};
const std::vector<ProtocolCase> cache_cases{
    {Mode::central, "ssp:s=1", "arrival", "owners", true},
    {Mode::central, "ssp:s=4", "arrival", "owners", true},
    {Mode::central, "pssp:s=2,beta=2", "notify", "owners", true},
    {Mode::central, "dssp:low=1,high=4,cap", "arrival", "owners", true},
    {Mode::central, "fluent:s=3,p=1", "arrival", "owners", true},
};
INSTANTIATE_TEST_SUITE_P(Allreduce, EveryJob, testing::ValuesIn(allreduce_cases));
INSTANTIATE_TEST_SUITE_P(Cache, EveryJob, testing::ValuesIn(cache_cases));
INSTANTIATE_TEST_SUITE_P(Servers, EveryJob, testing::ValuesIn(server_cases));
INSTANTIATE_TEST_SUITE_P(Peers, EveryJob, testing::ValuesIn(peer_cases));
INSTANTIATE_TEST_SUITE_P(Broadcast, EveryJob, testing::ValuesIn(broadcast_cases));

TEST(Protocol, RefusesAbsencesThatDoNotFit) {
  ProtocolOptions options = small_job();
  options.absences.assign(options.workers, {0ms, 10ms});
  EXPECT_TRUE(check(options));
  options.absences.emplace_back();
  EXPECT_FALSE(check(options));
  options.absences.assign(options.workers, {10ms, 0ms});
  EXPECT_FALSE(check(options));
}

/// Worker 0 waits for the answer to its push, which the network does not deliver.
TEST(Protocol, FailsIfTheJobStalls) {
  ProtocolOptions options = small_job();
  options.mode = Mode::hybrid;
  options.barrier = {barrier::Asp{}};
  Protocol protocol{options, counting_job(options, 3, nullptr, false)};
  protocol.network().block(0, static_cast<MemberId>(options.workers));
  EXPECT_FALSE(protocol.run());
  EXPECT_NE(protocol.error().find("the job stalls at step 0"), std::string::npos)
      << protocol.error();
}

/// Returns the mean time of a step of 4 workers, each of which computes for 100 ms, if messages
/// around the ring take `sum` in all.
Time step_time(const std::string& exchange, Time sum) {
  ProtocolOptions options = small_job();
  options.mode = Mode::peer;
  options.exchange = exchange;
  options.barrier = {barrier::Bsp{}};
  options.steps = 200;
  options.step_time = {laws::Constant{100ms}};
  options.link = {.latency = {laws::Constant{sum / 6}}};  // 3 messages to sum, and 3 to copy
  Protocol protocol{options, counting_job(options, 3, nullptr, true)};
  EXPECT_TRUE(protocol.run()) << protocol.error();
  return protocol.result().elapsed / 200;
}

/// HPSGD (arXiv 2009.02701): a step takes the longer of both times, and not their sum.
TEST(Overlap, HidesTheSumBehindTheNextStep) {
  for (const Time sum : {25ms, 100ms, 200ms}) {
    const auto longer = static_cast<double>(std::max<Time>(sum, 100ms).count());
    const auto overlapped = step_time("allreduce:ring,overlap", sum).count();
    EXPECT_NEAR(static_cast<double>(overlapped) / longer, 1, 0.1) << sum.count();
    const auto both = static_cast<double>((sum + 100ms).count());
    const auto one_by_one = step_time("allreduce:ring", sum).count();
    EXPECT_NEAR(static_cast<double>(one_by_one) / both, 1, 0.1) << sum.count();
  }
}

/// Returns the mean time, in ms, of a step of 4 workers, each of which computes for 90 ms, over
/// links that take about `sum` for a sum.
double step_ms_in_buckets(const std::string& exchange, Time sum, bool has_early_parts) {
  constexpr std::size_t counters = 4000;
  ProtocolOptions options = small_job();
  options.mode = Mode::peer;
  options.exchange = exchange;
  options.barrier = {barrier::Bsp{}};
  options.steps = 20;
  options.step_time = {laws::Constant{90ms}};
  const double bytes = 1.5 * counters * 4 * sizeof(double);
  options.link = {.latency = {laws::Constant{10us}},
                  .bytes_per_second = bytes / std::chrono::duration<double>(sum).count()};
  Job job = counting_job(options, counters, nullptr, true);
  job.has_early_parts = has_early_parts;
  Protocol protocol{options, std::move(job)};
  EXPECT_TRUE(protocol.run()) << protocol.error();
  return static_cast<double>(protocol.result().elapsed.count()) / 20e6;
}

/// If the sum is shorter than the backward pass, only that of the last bucket is left after it. If
/// it is longer, it begins with the first bucket: after a third of the step, and a sixth of the
/// rest, so at least 50 ms earlier. (Sums of buckets that begin at different times also use both
/// directions of a link at once.)
TEST(Buckets, HideTheSumBehindTheBackwardPass) {
  for (const Time sum : {12ms, 30ms, 48ms}) {
    const double whole = step_ms_in_buckets("allreduce:ring,buckets=1", sum, true) - 90;
    const double left = step_ms_in_buckets("allreduce:ring,buckets=6", sum, true) - 90;
    EXPECT_NEAR(left / (whole / 6), 1, 0.1) << sum.count();
    EXPECT_LE(step_ms_in_buckets("allreduce:ring,buckets=6", sum, false) - 90, 1.05 * whole);
  }
  const double late = step_ms_in_buckets("allreduce:ring,buckets=6", 240ms, false);
  const double early = step_ms_in_buckets("allreduce:ring,buckets=6", 240ms, true);
  EXPECT_GE(late - early, 50);
}

/// Returns the bytes of all pieces of sums in a job of 160 steps.
double bytes_of_sums(const std::string& exchange) {
  ProtocolOptions options = small_job();
  options.mode = Mode::peer;
  options.exchange = exchange;
  options.barrier = {barrier::Bsp{}};
  options.steps = 160;
  options.link.duplication = 0;
  Protocol protocol{options, counting_job(options, 3, nullptr, false)};
  EXPECT_TRUE(protocol.run()) << protocol.error();
  return static_cast<double>(traffic_of<core::SumPiece>(protocol.result().traffic).bytes);
}

/// In the end there is one sum more, in which no worker has an update.
TEST(Average, SendsBytesInProportionToRounds) {
  const double of_all_steps = bytes_of_sums("allreduce");
  for (const int every : {1, 2, 4, 8})
    EXPECT_NEAR(bytes_of_sums("average:every=" + std::to_string(every)) / of_all_steps, 1.0 / every,
                0.01)
        << every;
}

}  // namespace
}  // namespace starling::sim
