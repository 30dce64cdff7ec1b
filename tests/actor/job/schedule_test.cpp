// The real actors of a job under CAF's deterministic scheduler, by many seeds: whichever actor acts
// next, and whenever time passes, each update is applied once, no worker passes a barrier that
// holds it back, all actors end, and the same seed gives the same job.
#include "tests/actor/job/schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <stop_token>

#include "starling/models/tabular/perceptron.hpp"
#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;
using core::MemberId;
using core::RangeId;
using core::Step;

#ifdef STARLING_SANITIZED
constexpr std::uint64_t schedules = 20;
#else
constexpr std::uint64_t schedules = 200;
#endif

/// Every range holds a counter a worker, to which each of the worker's steps adds exactly 1: a
/// reader knows from them which updates it has read.
class CountingTask final : public Task {
 public:
  /// Called with what a step has read.
  std::function<void(MemberId, Step, std::span<const core::Value>)> on_read;
  /// True where the step is to throw this time.
  std::function<bool(MemberId, Step)> throws;

  CountingTask(std::size_t workers, std::size_t ranges, bool bsp)
      : workers_(workers), gradient_(bsp ? -static_cast<float>(workers) : -1.0F) {
    for (RangeId r = 0; r < ranges; ++r) {
      layout_.parameters.push_back({.name = "counters", .shape = {workers}});
      layout_.offsets.push_back(layout_.size);
      layout_.ranges.push_back({layout_.size, workers, 0, {{r, 0, 0, workers}}});
      layout_.size += workers;
    }
  }

  [[nodiscard]] const core::Layout& layout() const override { return layout_; }

  /// A push of `workers` samples weighs 1 at batch 1; a round's mean divides by the workers.
  [[nodiscard]] static core::Applier<float> applier() {
    return core::GradientApplier{
        .optimizer = models::Sgd{.lr = 1}, .schedule = {}, .l2 = 0, .batch = 1};
  }
  [[nodiscard]] std::vector<core::RangeState> start() const {
    return to_ranges<float>(layout_, std::vector<float>(layout_.size));
  }

  StepResult compute(const StepInput& input, Scratch&) override {
    if (on_read) on_read(input.worker, input.step, input.values);
    if (throws && throws(input.worker, input.step)) throw std::runtime_error{"not in the mood"};
    StepResult result;
    result.update.samples = static_cast<std::uint32_t>(workers_);
    for (RangeId r = 0; r < layout_.ranges.size(); ++r) {
      std::vector<float> one_hot(workers_);
      one_hot[input.worker] = gradient_;
      const auto buffer = core::Buffer::copy_of<float>(one_hot);
      result.update.parts.push_back({r, {buffer, 0, workers_, nullptr}});
    }
    return result;
  }

 private:
  std::size_t workers_;
  float gradient_;
  core::Layout layout_;
};

/// Follows the messages, and so knows which steps each barrier could have seen.
class BarrierChecker {
 public:
  explicit BarrierChecker(JobOptions options)
      : options_(std::move(options)), heard_(options_.workers) {}

  void on_message(const std::string& to, const core::Message& message) {
    if (const auto* arrived = std::get_if<core::Arrived>(&message))
      arrived_[arrived->worker] = arrived->step;
    if (const auto* ended = std::get_if<core::Ended>(&message); ended && to == "coordinator")
      arrived_[ended->worker] = barrier::finished;
    if (const auto* answer = std::get_if<core::StepAnswer>(&message)) {
      Heard& heard = heard_.at(std::stoul(to.substr(to.find(' '))));
      if (answer->draw > heard.draw) heard = {answer->draw, {}};
      if (answer->draw == heard.draw) heard.steps[answer->from] = answer->step;
    }
  }

  /// A worker has passed the barrier at `step` and reads: enough others were far enough, and where
  /// these are known, the values read hold their updates, as they hold its own.
  void on_read(MemberId reader, Step step, std::span<const core::Value> values) {
    const std::string who = "worker " + std::to_string(reader) + " at step " + std::to_string(step);
    const auto least = barrier::floor(options_.barrier, step).value_or(0);
    const bool central = core::keeps_steps_centrally(options_.mode);
    std::set<MemberId> ahead;
    for (const auto& [other, reached] : central ? arrived_ : heard_[reader].steps)
      if (other != reader && reached >= least) ahead.insert(other);
    const std::size_t others = options_.workers - 1;
    const std::size_t needed = least > 0 ? barrier::observes(options_.barrier, others) : 0;
    if (ahead.size() < needed) faults.push_back(who + " has passed a barrier that holds it back");
    // The workers that the coordinator drew are not known, unless it drew all.
    if (needed == 0 || (central && needed < others)) ahead.clear();
    for (const core::Value& value : values) {
      const auto counters = value.value.as<float>();
      if (counters[reader] != static_cast<float>(step))
        faults.push_back(who + " does not read its own updates");
      for (const MemberId other : ahead)
        if (counters[other] < static_cast<float>(std::min(least, options_.steps)))
          faults.push_back(who + " reads without updates of worker " + std::to_string(other));
    }
  }

  /// Violations that were found, one sentence each.
  std::vector<std::string> faults;

 private:
  struct Heard {
    std::uint64_t draw = 0;
    std::map<MemberId, Step> steps;
  };
  JobOptions options_;
  std::map<MemberId, Step> arrived_;
  std::vector<Heard> heard_;
};

/// How a job went under one schedule.
struct Told {
  Outcome outcome;
  /// Violations that were found, one sentence each.
  std::vector<std::string> faults;
  /// A line for each act, where asked for.
  std::vector<std::string> trace;
};

struct Events {
  /// True where a step is to throw this time.
  std::function<bool(MemberId, Step)> throws = nullptr;
  /// Called after each act with their number.
  std::function<void(std::size_t)> on_act = nullptr;
};

/// Runs a counting job to its end by the schedule of its seed, under a checker that takes the
/// barrier to be `believed`.
Told run(const JobOptions& options, const barrier::Barrier& believed, Events events = {},
         bool traced = false) {
  JobOptions in_belief = options;
  in_belief.barrier = believed;
  BarrierChecker checker{in_belief};
  const auto task =
      std::make_shared<CountingTask>(options.workers, 3, barrier::is_bsp(options.barrier));
  task->throws = std::move(events.throws);
  task->on_read = [&](MemberId worker, Step step, std::span<const core::Value> values) {
    checker.on_read(worker, step, values);
  };
  Told told;
  Schedule schedule{options.seed};
  schedule.on_message = [&](const std::string& to, const core::Message& message) {
    checker.on_message(to, message);
  };
  schedule.on_act = std::move(events.on_act);
  if (traced) schedule.trace = &told.trace;
  const auto start = task->start();
  told.outcome =
      run_job<float>(schedule.conducted(options), task, CountingTask::applier(), start).value();
  told.faults = std::move(checker.faults);
  if (schedule.stuck()) told.faults.emplace_back("nobody could act, or the job takes too long");
  return told;
}

struct Case {
  core::Mode mode;
  const char* barrier;
  const char* recheck;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << core::print(c.mode) << " " << c.barrier << " " << c.recheck;
}

class EverySchedule : public testing::TestWithParam<Case> {
 protected:
  static JobOptions options(std::uint64_t seed) {
    const auto [mode, text, recheck] = GetParam();
    JobOptions options;
    options.mode = mode;
    options.barrier = barrier::parse(text).value();
    options.recheck = barrier::parse_recheck(recheck).value();
    options.seed = seed;
    options.workers = 2 + seed % 4;
    options.shards = 1 + seed % 3;
    options.steps = 6;
    options.delay = parse_distribution("exp:5ms").value();
    options.stragglers = {{.count = 1, .factor = 3}};
    if (options.barrier.sample)
      options.barrier.sample = std::min(*options.barrier.sample, options.workers - 1);
    return options;
  }

  /// Runs a job, and expects no violation.
  static Told run_well(const JobOptions& options, Events events = {}, bool traced = false) {
    Told told = run(options, options.barrier, std::move(events), traced);
    EXPECT_EQ(told.faults, std::vector<std::string>{});
    return told;
  }

  /// Each acknowledged update of each worker is in each range, once.
  static void expect_each_update_once(const Outcome& outcome, std::size_t workers) {
    ASSERT_EQ(outcome.model.size(), 3U);
    for (const auto& state : outcome.model) {
      const auto counters = state.value.as<float>();
      ASSERT_EQ(counters.size(), workers);
      for (MemberId w = 0; w < workers; ++w)
        EXPECT_EQ(counters[w], static_cast<float>(state.ledger.at(w).step));
      EXPECT_EQ(std::accumulate(counters.begin(), counters.end(), 0.0F),
                static_cast<float>(outcome.last.updates));
    }
  }
};

TEST_P(EverySchedule, AppliesEachUpdateOnceAndLetsNobodyPassTooEarly) {
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    const Outcome outcome = run_well(job).outcome;
    ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    EXPECT_EQ(outcome.last.updates, job.workers * job.steps);
    expect_each_update_once(outcome, job.workers);
    if (const auto bound = barrier::spread_bound(job.barrier)) {
      EXPECT_LE(outcome.last.max_lag, *bound);
    }
  }
}

TEST_P(EverySchedule, GoesOnWhereStepsThrowAndAreTriedAgain) {
  for (std::uint64_t seed = 0; seed < schedules / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    std::map<std::pair<MemberId, Step>, int> tries;
    const auto throws = [&](MemberId worker, Step step) {
      const auto tantrums = mix(mix(seed + worker) + step) % 3;
      return tries[{worker, step}]++ < static_cast<int>(tantrums);
    };
    const Outcome outcome = run_well(job, {.throws = throws}).outcome;
    ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    EXPECT_GT(std::accumulate(tries.begin(), tries.end(), 0,
                              [](int sum, const auto& entry) { return sum + entry.second; }),
              static_cast<int>(job.workers * job.steps));
    expect_each_update_once(outcome, job.workers);
  }
}

/// The observer collects the owners' ranges while workers that do not know yet go on.
TEST_P(EverySchedule, EndsInOrderWhereAStepKeepsThrowing) {
  for (std::uint64_t seed = 0; seed < schedules / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    const auto throws = [&](MemberId worker, Step step) {
      return worker == seed % job.workers && step == seed % job.steps;
    };
    const Outcome outcome = run_well(job, {.throws = throws}).outcome;
    EXPECT_EQ(outcome.end, Outcome::End::failed);
    EXPECT_NE(outcome.error.find("failed 3 times at step"), std::string::npos) << outcome.error;
    ASSERT_EQ(outcome.model.size(), 3U);
    for (const auto& state : outcome.model)
      for (MemberId w = 0; w < job.workers; ++w) {
        const float counter = state.value.as<float>()[w];
        EXPECT_EQ(counter, std::floor(counter));
        EXPECT_LE(counter, static_cast<float>(job.steps));
      }
  }
}

TEST_P(EverySchedule, StopsInOrderWheneverItIsAskedTo) {
  for (std::uint64_t seed = 0; seed < schedules / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobOptions job = options(seed);
    job.steps = 1'000'000;
    std::stop_source source;
    job.stop = source.get_token();
    const std::size_t last = Random{seed}.below(1500);
    const auto stop = [&](std::size_t acts) {
      if (acts == last) source.request_stop();
    };
    const Outcome outcome = run_well(job, {.on_act = stop}).outcome;
    EXPECT_EQ(outcome.end, Outcome::End::stopped) << outcome.error;
    expect_each_update_once(outcome, job.workers);
  }
}

TEST_P(EverySchedule, RepeatsItselfActByActWithTheSameSeed) {
  std::set<std::vector<std::string>> different;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto once = run_well(options(seed), {}, true);
    const auto again = run_well(options(seed), {}, true);
    EXPECT_EQ(once.trace, again.trace);
    EXPECT_EQ(once.outcome.last.waiting_share, again.outcome.last.waiting_share);
    different.insert(once.trace);
  }
  EXPECT_EQ(different.size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(
    Of, EverySchedule,
    testing::Values(Case{core::Mode::central, "bsp", "arrival"},
                    Case{core::Mode::central, "ssp:s=2", "arrival"},
                    Case{core::Mode::central, "asp", "arrival"},
                    Case{core::Mode::central, "pbsp:beta=2", "arrival"},
                    Case{core::Mode::central, "pssp:s=1,beta=2", "notify+interval:auto"},
                    Case{core::Mode::hybrid, "asp", "notify"},
                    Case{core::Mode::hybrid, "pbsp:beta=2", "notify"},
                    Case{core::Mode::hybrid, "pssp:s=1,beta=2", "interval:2ms"},
                    Case{core::Mode::peer, "asp", "notify+interval:auto"},
                    Case{core::Mode::peer, "pbsp:beta=4", "notify"},
                    Case{core::Mode::peer, "pssp:s=1,beta=2", "notify+interval:auto"}));

/// Whatever the schedule, P workers under bsp are one machine on the union of their batches.
TEST(UnionBatch, IsTheSameToTheBitUnderEverySchedule) {
  const models::Table data = load("digits:n=200");
  const auto any = models::parse_model<float>("softmax", data).value();
  const auto& model = std::get<models::Softmax<float>>(any);
  TrainOptions options;
  options.job.mode = core::Mode::central;
  options.job.barrier = {barrier::Bsp{}};
  options.job.shards = 2;
  options.job.steps = 10;
  const auto train_by = [&](std::size_t workers, std::uint64_t seed) {
    Schedule schedule{seed};
    TrainOptions mine = options;
    mine.job.workers = workers;
    mine.batch = 24 / workers;
    mine.job = schedule.conducted(mine.job);
    return parameters_of(model, mine, train(model, data, nullptr, mine).value());
  };
  const auto alone = train_by(1, 0);
  for (const std::size_t workers : {2U, 3U, 4U}) {
    const auto first = train_by(workers, 0);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      difference += std::pow(first[i] - alone[i], 2);
      norm += std::pow(alone[i], 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), 1e-5) << workers << " workers";
    for (std::uint64_t seed = 1; seed < schedules / 5; ++seed)
      EXPECT_EQ(train_by(workers, seed), first) << workers << " workers, seed " << seed;
  }
}

/// A checker that believes in a stricter barrier than the job's must find violations.
TEST(BarrierChecker, NoticesWhoPassesTooEarly) {
  struct Lax {
    core::Mode mode;
    const char* barrier;
    const char* believed;
  };
  for (const Lax& lax :
       {Lax{core::Mode::central, "asp", "bsp"}, Lax{core::Mode::central, "ssp:s=2", "ssp:s=1"},
        Lax{core::Mode::central, "pbsp:beta=1", "pbsp:beta=3"},
        Lax{core::Mode::hybrid, "pbsp:beta=1", "pbsp:beta=2"},
        Lax{core::Mode::peer, "pssp:s=2,beta=2", "pssp:s=1,beta=2"}}) {
    std::size_t faults = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      JobOptions job;
      job.mode = lax.mode;
      job.barrier = barrier::parse(lax.barrier).value();
      job.steps = 6;
      job.seed = seed;
      job.delay = parse_distribution("exp:5ms").value();
      faults += run(job, barrier::parse(lax.believed).value()).faults.size();
    }
    EXPECT_GT(faults, 0U) << lax.barrier << " seen as " << lax.believed;
  }
}

/// A job that would never be over is given up.
TEST(TestScheduler, ThatGivesUpFailsTheJob) {
  struct Idle final : TestScheduler {
    Schedule schedule{1};
    bool began = false;
    void conduct(caf::actor_system& system, ComputePool& pool,
                 const std::function<bool()>& over) override {
      if (std::exchange(began, true)) schedule.conduct(system, pool, over);
    }
  } idle;
  JobOptions job;
  job.steps = 1;
  job.scheduler = &idle;
  const auto task = std::make_shared<CountingTask>(job.workers, 1, false);
  const auto outcome = run_job<float>(job, task, CountingTask::applier(), task->start()).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "the scheduler has given the job up");
}

}  // namespace
}  // namespace starling::live
