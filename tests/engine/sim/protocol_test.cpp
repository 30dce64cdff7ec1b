/// Invariants of every job, whatever the network does: seeded runs of whole jobs whose parameters
/// count updates. Every range holds one counter a worker, and each update adds exactly 1 to its
/// worker's, so that a reader knows which updates it has read.
#include "starling/engine/sim/protocol/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Buffer;
using core::Compute;
using core::Mode;
using core::RangeId;
using core::RangeState;
using core::Update;
using core::Value;

/// A small job over a network that reorders and repeats messages; worker 0 is slow.
ProtocolOptions small_job() {
  ProtocolOptions options;
  options.workers = 4;
  options.shards = 2;
  options.steps = 10;
  options.step_time = {laws::Exponential{5ms}};
  options.link = {.latency = {laws::Uniform{1500us}}, .duplication = 0.1};
  options.events_max = 2'000'000;
  return options;
}

/// Worker 0 takes `factor` times as long.
std::vector<double> first_is_slow(std::size_t workers, double factor) {
  std::vector<double> slowness(workers, 1);
  slowness[0] = factor;
  return slowness;
}

/// Returns the ranges that a worker's step concerns; all where absent.
using Touches = std::function<bool(MemberId, Step, RangeId)>;

/// Descends by gradients of -1 at rate 1 if `descends`, else adds 1: where workers die, a round's
/// mean is over fewer.
Job<double> counting_job(const ProtocolOptions& options, std::size_t ranges, const Touches& touches,
                         bool descends) {
  const std::size_t workers = options.workers;
  const bool bsp = options.bsp.value_or(barrier::is_bsp(options.barrier));
  core::Layout layout;
  Job<double> job;
  for (RangeId r = 0; r < ranges; ++r) {
    auto zeros = Buffer::make<double>(workers);
    std::ranges::fill(zeros->as<double>(), 0.0);
    job.start.push_back(
        {.range = r, .value = {std::move(zeros), 0, workers, nullptr}, .slots = {}, .ledger = {}});
    layout.parameters.push_back({.name = "counters", .shape = {workers}});
    layout.offsets.push_back(layout.size);
    layout.ranges.push_back({layout.size, workers, 0, {{r, 0, 0, workers}}});
    layout.size += workers;
  }
  job.layout = std::make_shared<const core::Layout>(std::move(layout));
  // A push of `workers` samples weighs 1 at batch 1; a round's mean divides by the workers.
  if (descends)
    job.applier = core::GradientApplier{
        .optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1};
  else
    job.applier = core::Merge<double>{
        [](const core::MergeSite&, std::span<double> value, std::span<const double> update) {
          std::ranges::transform(value, update, value.begin(), std::plus<>{});
        }};
  const double gradient = !descends ? 1 : bsp ? -static_cast<double>(workers) : -1;
  job.compute = [=](MemberId worker, const Compute& compute) {
    Update update{.parts = {}, .samples = static_cast<std::uint32_t>(workers)};
    for (RangeId r = 0; r < ranges; ++r) {
      if (touches && !touches(worker, compute.step, r)) continue;
      auto one_hot = Buffer::make<double>(workers);
      std::ranges::fill(one_hot->as<double>(), 0.0);
      one_hot->as<double>()[worker] = gradient;
      update.parts.push_back({r, {std::move(one_hot), 0, workers, nullptr}});
    }
    return update;
  };
  if (touches)
    job.plan = [=](MemberId worker, Step step) {
      std::vector<core::RangeRows> wanted;
      for (RangeId r = 0; r < ranges; ++r)
        if (touches(worker, step, r)) wanted.push_back({r, nullptr});
      return wanted;
    };
  return job;
}

/// A job that counts, and checks all along what must hold all along.
class Counting {
 public:
  /// Worker, step and time of each start of a computation.
  std::vector<std::tuple<MemberId, Step, Time>> passes;

  explicit Counting(const ProtocolOptions& options, std::size_t ranges = 3,
                    const Touches& touches = nullptr, bool descends = true)
      : touches_(touches),
        asked_(options.workers),
        protocol_(options, watched(counting_job(options, ranges, touches, descends))) {
    protocol_.on_compute = [this](MemberId worker, const Compute& compute) {
      passes.emplace_back(worker, compute.step, protocol_.now());
      expect_fresh_enough(worker, compute);
      asked_[worker].second.clear();
    };
    protocol_.on_send = [this](MemberId worker, const core::Send& mail) {
      if (const auto* query = std::get_if<core::StepQuery>(&mail.message)) {
        auto& [draw, members] = asked_[worker];
        if (std::exchange(draw, query->draw) != query->draw) members.clear();
        members.insert(std::get<core::ToWorker>(mail.to).id);
      }
    };
    protocol_.on_event = [this] { expect_bounded_spread(); };
  }

  Protocol<double>& operator*() { return protocol_; }
  Protocol<double>* operator->() { return &protocol_; }

  void run() {
    ASSERT_TRUE(protocol_.run()) << protocol_.error();
    for (MemberId w = 0; w < protocol_.options().workers; ++w)
      EXPECT_TRUE(protocol_.worker(w).done() || protocol_.dead(w))
          << "worker " << w << " hangs at step " << protocol_.worker(w).step();
  }

  /// Each acknowledged update of each worker is in each range it concerns, once.
  void expect_each_update_once() {
    for (const RangeState& state : protocol_.model())
      for (MemberId w = 0; w < protocol_.options().workers; ++w) {
        if (protocol_.dead(w)) continue;
        EXPECT_EQ(state.value.as<double>()[w], counted(w, state.range, protocol_.worker(w).step()))
            << "range " << state.range << ", worker " << w;
        if (!touches_) {
          EXPECT_EQ(state.ledger[w].step, protocol_.worker(w).step());
        }
      }
  }

  [[nodiscard]] Step largest_spread() const { return largest_spread_; }

 private:
  /// Returns the job with computations that expect the values read to be unchanged when they end.
  Job<double> watched(Job<double> job) {
    job.compute = [this, compute = std::move(job.compute)](MemberId worker, const Compute& read) {
      EXPECT_EQ(counters(read), read_[worker]) << "an owner has changed what a reader holds";
      return compute(worker, read);
    };
    return job;
  }

  /// All counters of a read, range after range.
  static std::vector<double> counters(const Compute& compute) {
    std::vector<double> all;
    for (const Value& value : compute.values)
      for (const double counter : value.value.as<double>()) all.push_back(counter);
    return all;
  }

  /// How many of the first `steps` updates of a worker concern a range.
  [[nodiscard]] double counted(MemberId worker, RangeId range, Step steps) const {
    if (!touches_) return static_cast<double>(steps);
    double count = 0;
    for (Step step = 0; step < steps; ++step) count += touches_(worker, step, range) ? 1 : 0;
    return count;
  }

  /// "For every worker in the view that let me pass, what I read holds its updates up to my step
  /// - s", and of its own all.
  void expect_fresh_enough(MemberId reader, const Compute& compute) {
    read_[reader] = counters(compute);
    const auto& options = protocol_.options();
    const Step floor = barrier::floor(options.barrier, compute.step).value_or(0);
    const bool everyone =
        barrier::needs_every_step(options.barrier) || options.barrier.sample == options.workers - 1;
    for (const Value& value : compute.values) {
      const auto counters = value.value.as<double>();
      EXPECT_EQ(counters[reader], counted(reader, value.range, compute.step));
      for (MemberId other = 0; other < options.workers; ++other) {
        if (other == reader || protocol_.dead(other)) continue;
        if (!everyone && !asked_[reader].second.contains(other)) continue;
        core::Worker& seen = protocol_.worker(other);
        const Step least = seen.done() ? std::min(floor, seen.step()) : floor;
        ASSERT_GE(counters[other], counted(other, value.range, least))
            << "worker " << reader << " at step " << compute.step << " read range " << value.range
            << " without worker " << other << "'s updates";
      }
    }
  }

  void expect_bounded_spread() {
    Step slowest = barrier::finished;
    Step fastest = 0;
    for (MemberId w = 0; w < protocol_.options().workers; ++w) {
      if (protocol_.worker(w).done() || protocol_.dead(w)) continue;
      slowest = std::min(slowest, protocol_.worker(w).step());
      fastest = std::max(fastest, protocol_.worker(w).step());
    }
    if (slowest > fastest) return;
    largest_spread_ = std::max(largest_spread_, fastest - slowest);
    if (const auto bound = barrier::spread_bound(protocol_.options().barrier)) {
      ASSERT_LE(fastest - slowest, *bound);
    }
  }

  Touches touches_;
  std::map<MemberId, std::vector<double>> read_;
  /// The last draw of each worker since its last step, and the workers that it asked.
  std::vector<std::pair<std::uint64_t, std::set<MemberId>>> asked_;
  Protocol<double> protocol_;
  Step largest_spread_ = 0;
};

struct ProtocolCase {
  Mode mode;
  const char* barrier;
  const char* recheck;
};

void PrintTo(const ProtocolCase& c, std::ostream* out) {
  *out << core::print(c.mode) << " " << c.barrier << " " << c.recheck;
}

class EveryJob : public testing::TestWithParam<ProtocolCase> {
 protected:
  static constexpr std::size_t sizes[] = {1, 2, 3, 5, 8};

  /// Options of one of many runs. Samples larger than the job are reduced to it.
  static ProtocolOptions options(std::uint64_t seed) {
    const auto [mode, text, recheck] = GetParam();
    ProtocolOptions options = small_job();
    options.mode = mode;
    options.barrier = barrier::parse(text).value();
    options.recheck = barrier::parse_recheck(recheck).value();
    options.seed = seed;
    options.workers = sizes[seed % std::size(sizes)];
    options.slowness = first_is_slow(options.workers, 3);
    options.shards = 1 + seed % 3;
    if (options.barrier.sample)
      options.barrier.sample = std::min(*options.barrier.sample, options.workers - 1);
    EXPECT_TRUE(check(options));
    return options;
  }
};

TEST_P(EveryJob, FinishesWithEachUpdateAppliedOnceAndNoReadTooStale) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed)};
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    for (MemberId w = 0; w < job->options().workers; ++w)
      EXPECT_EQ(job->worker(w).step(), job->options().steps);
  }
}

TEST_P(EveryJob, ThatTouchesOnlySomeRangesDoesToo) {
  const Touches touches = [](MemberId worker, Step step, RangeId range) {
    return mix(mix(Step{worker} * 1000 + step) + range) % 3 == 0;
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed), 4, touches};
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(EveryJob, LosesAndDoublesNothingWhenCarriersAreLost) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed)};
    Random random{seed};
    for (int i = 0; i < 6; ++i)
      job->crash(static_cast<MemberId>(random.below(job->options().workers)),
                 Time{random.below(150'000'000)}, Time{random.below(20'000'000)});
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    for (MemberId w = 0; w < job->options().workers; ++w)
      EXPECT_EQ(job->worker(w).step(), job->options().steps);
  }
}

TEST_P(EveryJob, StopsCleanlyWhenToldTo) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed)};
    Random random{seed};
    job->stop(Time{random.below(60'000'000)});
    job->crash(0, Time{random.below(60'000'000)}, 1ms);
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

/// The same job over links that lose a third of all packets, hold some up, and are partitioned now
/// and then, each direction for itself; nodes freeze, carriers are lost.
void make_hostile(Counting& job, std::uint64_t seed) {
  Random random{seed};
  const auto some_time = [&](std::uint64_t below) {
    return Time{static_cast<Time::rep>(random.below(below))};
  };
  const auto some_node = [&] { return static_cast<NodeId>(random.below(job->nodes())); };
  for (int i = 0; i < 8; ++i) {
    const NodeId from = some_node();
    const NodeId to = some_node();
    const Time start = some_time(300'000'000);
    job->at(start, [&job, from, to] { job->network().cut(from, to); });
    job->at(start + some_time(100'000'000), [&job, from, to] { job->network().heal(from, to); });
  }
  for (int i = 0; i < 3; ++i) {
    const NodeId frozen = some_node();
    const Time start = some_time(300'000'000);
    job->freeze(frozen, start, some_time(60'000'000));
  }
  for (int i = 0; i < 4; ++i) {
    const auto lost = static_cast<MemberId>(random.below(job->options().workers));
    const Time start = some_time(300'000'000);
    job->crash(lost, start, some_time(20'000'000));
  }
}

LinkOptions hostile_link() {
  return {.latency = {laws::Exponential{1ms}},
          .loss = 0.3,
          .duplication = 0.1,
          .reordering = 0.1,
          .delay = {laws::Exponential{10ms}}};
}

TEST_P(EveryJob, LosesAndDoublesNothingOverAHostileNetwork) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions hostile = options(seed);
    hostile.link = hostile_link();
    Counting job{hostile};
    make_hostile(job, seed);
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    for (MemberId w = 0; w < hostile.workers; ++w) EXPECT_EQ(job->worker(w).step(), hostile.steps);
    EXPECT_GT(job->network().counts().lost + (hostile.workers == 1 ? 1 : 0), 0U);
  }
}

TEST_P(EveryJob, LosesAndDoublesNothingWhereverBetweenTwoEffectsACarrierIsLost) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed)};
    Random random{seed};
    std::uint64_t faults = 0;
    job->interrupt = [&](MemberId, const core::Effect&) -> std::optional<Time> {
      if (faults == 20 || random.below(15) > 0) return std::nullopt;
      ++faults;
      return Time{random.below(5'000'000)};
    };
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
    EXPECT_GT(faults, 0U);
    for (MemberId w = 0; w < job->options().workers; ++w)
      EXPECT_EQ(job->worker(w).step(), job->options().steps);
  }
}

/// Not of peers: their ranges would die with them.
class JobWithServers : public EveryJob {};

TEST_P(JobWithServers, GoesOnWithoutTheDead) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Counting job{options(seed), 3, nullptr, false};
    Random random{seed};
    for (MemberId w = 1; w < job->options().workers; w += 2)
      job->die(w, Time{static_cast<Time::rep>(random.below(80'000'000))});
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(JobWithServers, GoesOnWithoutTheDeadOverAHostileNetwork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions hostile = options(seed);
    hostile.link = hostile_link();
    Counting job{hostile, 3, nullptr, false};
    make_hostile(job, seed);
    Random random{seed};
    for (MemberId w = 1; w < hostile.workers; w += 2)
      job->die(w, Time{static_cast<Time::rep>(random.below(200'000'000))});
    ASSERT_NO_FATAL_FAILURE(job.run());
    job.expect_each_update_once();
  }
}

TEST_P(EveryJob, RepeatsItselfWithTheSameSeed) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ProtocolOptions same = options(seed);
    if (seed % 2 == 1) same.link = hostile_link();
    Counting one{same};
    Counting two{same};
    one.run();
    two.run();
    EXPECT_EQ(one.passes, two.passes);
    EXPECT_EQ(one->network().counts().sent, two->network().counts().sent);
    EXPECT_EQ(one->now(), two->now());
  }
}

const std::vector<ProtocolCase> with_servers{
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
const std::vector<ProtocolCase> with_peers{
    {Mode::peer, "asp", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=1", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=7", "notify"},
    {Mode::peer, "pssp:s=2,beta=2", "notify+interval:auto"},
    {Mode::peer, "pssp:s=0,beta=3", "interval:auto"},
};
INSTANTIATE_TEST_SUITE_P(Servers, EveryJob, testing::ValuesIn(with_servers));
INSTANTIATE_TEST_SUITE_P(Peers, EveryJob, testing::ValuesIn(with_peers));
INSTANTIATE_TEST_SUITE_P(Servers, JobWithServers, testing::ValuesIn(with_servers));

/// Two barriers that are the same by definition.
struct ModePair {
  Mode mode;
  const char* one;
  const char* other;
};

void PrintTo(const ModePair& pair, std::ostream* out) {
  *out << core::print(pair.mode) << " " << pair.one << " " << pair.other;
}

class EqualBarriers : public testing::TestWithParam<ModePair> {};

/// Not only alike: given the same network and the same computations, worker for worker and
/// nanosecond for nanosecond.
TEST_P(EqualBarriers, LetTheSameWorkersPassAtTheSameTimes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ProtocolOptions options = small_job();
    options.mode = GetParam().mode;
    options.workers = 6;
    options.slowness = first_is_slow(6, 3);
    options.seed = seed;
    options.bsp = false;
    options.barrier = barrier::parse(GetParam().one).value();
    Counting one{options};
    options.barrier = barrier::parse(GetParam().other).value();
    Counting other{options};
    one.run();
    other.run();
    EXPECT_EQ(one.passes, other.passes);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EqualBarriers,
                         testing::Values(ModePair{Mode::central, "bsp", "ssp:s=0"},
                                         ModePair{Mode::central, "bsp", "pbsp:beta=5"},
                                         ModePair{Mode::central, "ssp:s=2", "pssp:s=2,beta=5"},
                                         ModePair{Mode::central, "asp", "ssp:s=inf"},
                                         ModePair{Mode::central, "asp", "pbsp:beta=0"},
                                         ModePair{Mode::central, "asp", "pssp:s=inf,beta=3"},
                                         ModePair{Mode::central, "pbsp:beta=2", "pssp:s=0,beta=2"},
                                         ModePair{Mode::peer, "asp", "pbsp:beta=0"},
                                         ModePair{Mode::peer, "asp", "pssp:s=inf,beta=3"},
                                         ModePair{Mode::hybrid, "asp", "ssp:s=inf"},
                                         ModePair{Mode::hybrid, "pbsp:beta=2", "pssp:s=0,beta=2"}));

/// A bound that is never reached proves little.
TEST(SpreadBound, IsReachedButNotPassed) {
  for (const char* text : {"bsp", "ssp:s=1", "ssp:s=3"}) {
    ProtocolOptions options = small_job();
    options.barrier = barrier::parse(text).value();
    options.slowness = first_is_slow(options.workers, 10);
    Counting job{options};
    job.run();
    EXPECT_EQ(job.largest_spread(), *barrier::spread_bound(options.barrier)) << text;
    EXPECT_EQ(job->coordinator()->spread_max(), job.largest_spread()) << text;
  }
}

TEST(Asp, LeavesStragglersFarBehind) {
  ProtocolOptions options = small_job();
  options.barrier = {barrier::Asp{}};
  options.slowness = first_is_slow(options.workers, 50);
  Counting job{options};
  job.run();
  EXPECT_GT(job.largest_spread(), 6U);
}

}  // namespace
}  // namespace starling::sim
