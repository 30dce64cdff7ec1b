/// What must hold in every job, whatever the network does: seeded runs of whole flocks whose
/// parameters count updates. Every range holds one counter a worker, and each update adds exactly 1
/// to its worker's, so that a reader can tell whose updates it has read.
#include "tests/core/flock.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

/// Says which ranges a worker's step concerns; all where absent.
using Touches = std::function<bool(WorkerId, Step, RangeId)>;

/// Descends by gradients of -1 at rate 1 if `descends`, else adds 1: where workers die, a round's
/// mean is over fewer.
FlockJob<double> counting_job(const FlockOptions& options, std::size_t ranges,
                              const Touches& touches, bool descends) {
  const std::size_t workers = options.workers;
  const bool bulk = options.bulk.value_or(barrier::is_bulk_synchronous(options.barrier));
  Layout layout;
  FlockJob<double> job;
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
  job.layout = std::make_shared<const Layout>(std::move(layout));
  // A push of `workers` samples weighs 1 at batch 1; a round's mean divides by the workers.
  if (descends)
    job.applier = Descend{.optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1};
  else
    job.applier = Merge<double>{
        [](const MergeSite&, std::span<double> value, std::span<const double> update) {
          std::ranges::transform(value, update, value.begin(), std::plus<>{});
        }};
  const double gradient = !descends ? 1 : bulk ? -static_cast<double>(workers) : -1;
  job.compute = [=](WorkerId worker, const Compute& compute) {
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
    job.plan = [=](WorkerId worker, Step step) {
      std::vector<RangeRows> wanted;
      for (RangeId r = 0; r < ranges; ++r)
        if (touches(worker, step, r)) wanted.push_back({r, nullptr});
      return wanted;
    };
  return job;
}

/// A flock that counts, and checks all along what must hold all along.
class CountingFlock {
 public:
  explicit CountingFlock(const FlockOptions& options, std::size_t ranges = 3,
                         const Touches& touches = nullptr, bool descends = true)
      : touches_(touches),
        flock_(options, watched(counting_job(options, ranges, touches, descends))) {
    flock_.on_compute = [this](WorkerId worker, const Compute& compute) {
      expect_fresh_enough(worker, compute);
    };
    flock_.on_event = [this] { expect_bounded_spread(); };
  }

  Flock<double>& operator*() { return flock_; }
  Flock<double>* operator->() { return &flock_; }

  void run() {
    ASSERT_TRUE(flock_.run()) << "the job never comes to rest";
    for (WorkerId w = 0; w < flock_.options().workers; ++w)
      EXPECT_TRUE(flock_.worker(w).done() || flock_.dead(w))
          << "worker " << w << " hangs at step " << flock_.worker(w).step();
  }

  /// Each acknowledged update of each worker is in each range it concerns, once.
  void expect_each_update_once() {
    for (const RangeState& state : flock_.model())
      for (WorkerId w = 0; w < flock_.options().workers; ++w) {
        if (flock_.dead(w)) continue;
        EXPECT_EQ(state.value.as<double>()[w], counted(w, state.range, flock_.worker(w).step()))
            << "range " << state.range << ", worker " << w;
        if (!touches_) {
          EXPECT_EQ(state.ledger[w].step, flock_.worker(w).step());
        }
      }
  }

  [[nodiscard]] Step largest_spread() const { return largest_spread_; }

 private:
  /// The job, whose computations expect to find what was read unchanged when they end.
  FlockJob<double> watched(FlockJob<double> job) {
    job.compute = [this, compute = std::move(job.compute)](WorkerId worker, const Compute& read) {
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
  [[nodiscard]] double counted(WorkerId worker, RangeId range, Step steps) const {
    if (!touches_) return static_cast<double>(steps);
    double count = 0;
    for (Step step = 0; step < steps; ++step) count += touches_(worker, step, range) ? 1 : 0;
    return count;
  }

  /// "For every worker in the view that let me pass, what I read holds its updates up to my step
  /// - s", and of its own all.
  void expect_fresh_enough(WorkerId reader, const Compute& compute) {
    read_[reader] = counters(compute);
    const auto& options = flock_.options();
    const Step floor = barrier::floor(options.barrier, compute.step).value_or(0);
    const bool everyone =
        barrier::needs_every_step(options.barrier) || options.barrier.sample == options.workers - 1;
    for (const Value& value : compute.values) {
      const auto counters = value.value.as<double>();
      EXPECT_EQ(counters[reader], counted(reader, value.range, compute.step));
      for (WorkerId other = 0; other < options.workers; ++other) {
        if (other == reader || flock_.dead(other)) continue;
        if (!everyone && !flock_.asked(reader).contains(other)) continue;
        Worker& seen = flock_.worker(other);
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
    for (WorkerId w = 0; w < flock_.options().workers; ++w) {
      if (flock_.worker(w).done() || flock_.dead(w)) continue;
      slowest = std::min(slowest, flock_.worker(w).step());
      fastest = std::max(fastest, flock_.worker(w).step());
    }
    if (slowest > fastest) return;
    largest_spread_ = std::max(largest_spread_, fastest - slowest);
    if (const auto bound = barrier::spread_bound(flock_.options().barrier)) {
      ASSERT_LE(fastest - slowest, *bound);
    }
  }

  Touches touches_;
  std::map<WorkerId, std::vector<double>> read_;
  Flock<double> flock_;
  Step largest_spread_ = 0;
};

struct Case {
  Mode mode;
  const char* barrier;
  const char* recheck;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << print(c.mode) << " " << c.barrier << " " << c.recheck;
}

class EveryFlock : public testing::TestWithParam<Case> {
 protected:
  static constexpr std::size_t sizes[] = {1, 2, 3, 5, 8};

  /// Options of one of many runs. Samples larger than the flock are cut to it.
  static FlockOptions options(std::uint64_t seed) {
    const auto [mode, text, recheck] = GetParam();
    FlockOptions options;
    options.mode = mode;
    options.barrier = barrier::parse(text).value();
    options.recheck = barrier::parse_recheck(recheck).value();
    options.seed = seed;
    options.workers = sizes[seed % std::size(sizes)];
    options.shards = 1 + seed % 3;
    if (options.barrier.sample)
      options.barrier.sample = std::min(*options.barrier.sample, options.workers - 1);
    EXPECT_TRUE(check(mode, options.barrier, *options.recheck, options.workers));
    return options;
  }
};

TEST_P(EveryFlock, FinishesWithEachUpdateAppliedOnceAndNoReadTooStale) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingFlock flock{options(seed)};
    ASSERT_NO_FATAL_FAILURE(flock.run());
    flock.expect_each_update_once();
    for (WorkerId w = 0; w < flock->options().workers; ++w)
      EXPECT_EQ(flock->worker(w).step(), flock->options().steps);
  }
}

TEST_P(EveryFlock, ThatTouchesOnlySomeRangesDoesToo) {
  const Touches touches = [](WorkerId worker, Step step, RangeId range) {
    return mix(mix(Step{worker} * 1000 + step) + range) % 3 == 0;
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingFlock flock{options(seed), 4, touches};
    ASSERT_NO_FATAL_FAILURE(flock.run());
    flock.expect_each_update_once();
  }
}

TEST_P(EveryFlock, LosesAndDoublesNothingWhenCarriersAreLost) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingFlock flock{options(seed)};
    Random random{seed};
    for (int i = 0; i < 6; ++i)
      flock->crash(static_cast<WorkerId>(random.below(flock->options().workers)),
                   Time{random.below(150'000'000)}, Time{random.below(20'000'000)});
    ASSERT_NO_FATAL_FAILURE(flock.run());
    flock.expect_each_update_once();
    for (WorkerId w = 0; w < flock->options().workers; ++w)
      EXPECT_EQ(flock->worker(w).step(), flock->options().steps);
  }
}

TEST_P(EveryFlock, StopsCleanlyWhenToldTo) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingFlock flock{options(seed)};
    Random random{seed};
    flock->stop(Time{random.below(60'000'000)});
    flock->crash(0, Time{random.below(60'000'000)}, 1ms);
    ASSERT_NO_FATAL_FAILURE(flock.run());
    flock.expect_each_update_once();
  }
}

/// Not of peers: their ranges would die with them.
class FlockWithServers : public EveryFlock {};

TEST_P(FlockWithServers, GoesOnWithoutTheDead) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CountingFlock flock{options(seed), 3, nullptr, false};
    Random random{seed};
    for (WorkerId w = 1; w < flock->options().workers; w += 2)
      flock->die(w, Time{static_cast<Time::rep>(random.below(80'000'000))});
    ASSERT_NO_FATAL_FAILURE(flock.run());
    flock.expect_each_update_once();
  }
}

TEST_P(EveryFlock, RepeatsItselfWithTheSameSeed) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CountingFlock one{options(seed)};
    CountingFlock two{options(seed)};
    one.run();
    two.run();
    EXPECT_EQ(one->passes, two->passes);
  }
}

const std::vector<Case> with_servers{
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
const std::vector<Case> with_peers{
    {Mode::peer, "asp", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=1", "notify+interval:auto"},
    {Mode::peer, "pbsp:beta=7", "notify"},
    {Mode::peer, "pssp:s=2,beta=2", "notify+interval:auto"},
    {Mode::peer, "pssp:s=0,beta=3", "interval:auto"},
};
INSTANTIATE_TEST_SUITE_P(Servers, EveryFlock, testing::ValuesIn(with_servers));
INSTANTIATE_TEST_SUITE_P(Peers, EveryFlock, testing::ValuesIn(with_peers));
INSTANTIATE_TEST_SUITE_P(Servers, FlockWithServers, testing::ValuesIn(with_servers));

/// Two barriers that are the same by definition.
struct Pair {
  Mode mode;
  const char* one;
  const char* other;
};

void PrintTo(const Pair& pair, std::ostream* out) {
  *out << print(pair.mode) << " " << pair.one << " " << pair.other;
}

class EqualBarriers : public testing::TestWithParam<Pair> {};

/// Not only alike: given the same network and the same computations, worker for worker and
/// nanosecond for nanosecond.
TEST_P(EqualBarriers, LetTheSameWorkersPassAtTheSameTimes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FlockOptions options;
    options.mode = GetParam().mode;
    options.workers = 6;
    options.seed = seed;
    options.bulk = false;
    options.barrier = barrier::parse(GetParam().one).value();
    CountingFlock one{options};
    options.barrier = barrier::parse(GetParam().other).value();
    CountingFlock other{options};
    one.run();
    other.run();
    EXPECT_EQ(one->passes, other->passes);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EqualBarriers,
                         testing::Values(Pair{Mode::central, "bsp", "ssp:s=0"},
                                         Pair{Mode::central, "bsp", "pbsp:beta=5"},
                                         Pair{Mode::central, "ssp:s=2", "pssp:s=2,beta=5"},
                                         Pair{Mode::central, "asp", "ssp:s=inf"},
                                         Pair{Mode::central, "asp", "pbsp:beta=0"},
                                         Pair{Mode::central, "asp", "pssp:s=inf,beta=3"},
                                         Pair{Mode::central, "pbsp:beta=2", "pssp:s=0,beta=2"},
                                         Pair{Mode::peer, "asp", "pbsp:beta=0"},
                                         Pair{Mode::peer, "asp", "pssp:s=inf,beta=3"},
                                         Pair{Mode::hybrid, "asp", "ssp:s=inf"},
                                         Pair{Mode::hybrid, "pbsp:beta=2", "pssp:s=0,beta=2"}));

/// A bound that is never reached proves little.
TEST(SpreadBound, IsReachedButNotPassed) {
  for (const char* text : {"bsp", "ssp:s=1", "ssp:s=3"}) {
    FlockOptions options;
    options.barrier = barrier::parse(text).value();
    options.straggling = 10;
    CountingFlock flock{options};
    flock.run();
    EXPECT_EQ(flock.largest_spread(), *barrier::spread_bound(options.barrier)) << text;
    EXPECT_EQ(flock->coordinator()->spread_max(), flock.largest_spread()) << text;
  }
}

TEST(Asp, LeavesStragglersFarBehind) {
  FlockOptions options;
  options.barrier = {barrier::Asp{}};
  options.straggling = 50;
  CountingFlock flock{options};
  flock.run();
  EXPECT_GT(flock.largest_spread(), 6U);
}

}  // namespace
}  // namespace starling::core
