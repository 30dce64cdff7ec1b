// Runs the actors of a job under CAF's deterministic scheduler with many seeds. Tests that, under
// every schedule, each update is applied once, no worker passes a barrier too early, and all actors
// end; and that the same seed gives the same acts.
#include "tests/actor/job/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tests/actor/job/scheduled_jobs.hpp"

namespace starling::actor {
namespace {

using core::MemberId;
using core::Step;

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

  /// Runs a job, and expects that it keeps the barrier and does not get stuck.
  static ScheduledRun run_without_violation(const JobOptions& options, RunHooks hooks = {},
                                            bool traced = false) {
    ScheduledRun run_result = run(options, options.barrier, std::move(hooks), traced);
    EXPECT_EQ(run_result.violations, std::vector<std::string>{});
    return run_result;
  }

  /// Expects that each range has each acknowledged update of each worker once.
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

TEST_P(EverySchedule, AppliesEachUpdateOnceAndKeepsTheBarrier) {
  for (std::uint64_t seed = 0; seed < schedule_count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    const Outcome outcome = run_without_violation(job).outcome;
    ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    EXPECT_EQ(outcome.last.updates, job.workers * job.steps);
    expect_each_update_once(outcome, job.workers);
    if (const auto bound = barrier::spread_bound(job.barrier)) {
      EXPECT_LE(outcome.last.max_lag, *bound);
    }
  }
}

TEST_P(EverySchedule, GoesOnWhenThrowingStepsAreTriedAgain) {
  for (std::uint64_t seed = 0; seed < schedule_count / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    std::map<std::pair<MemberId, Step>, int> tries;
    const auto throws = [&](MemberId worker, Step step) {
      const auto throws_max = mix(mix(seed + worker) + step) % 3;
      return tries[{worker, step}]++ < static_cast<int>(throws_max);
    };
    const Outcome outcome = run_without_violation(job, {.throws = throws}).outcome;
    ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    EXPECT_GT(std::accumulate(tries.begin(), tries.end(), 0,
                              [](int sum, const auto& entry) { return sum + entry.second; }),
              static_cast<int>(job.workers * job.steps));
    expect_each_update_once(outcome, job.workers);
  }
}

/// While the observer collects the owners' ranges, other workers may continue, because they are not
/// stopped yet.
TEST_P(EverySchedule, FailsInOrderWhenAStepKeepsThrowing) {
  for (std::uint64_t seed = 0; seed < schedule_count / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const JobOptions job = options(seed);
    const auto throws = [&](MemberId worker, Step step) {
      return worker == seed % job.workers && step == seed % job.steps;
    };
    const Outcome outcome = run_without_violation(job, {.throws = throws}).outcome;
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

TEST_P(EverySchedule, StopsInOrderAtAnyTime) {
  for (std::uint64_t seed = 0; seed < schedule_count / 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    JobOptions job = options(seed);
    job.steps = 1'000'000;
    std::stop_source source;
    job.stop = source.get_token();
    const std::size_t last = Random{seed}.below(1500);
    const auto stop = [&](std::size_t acts) {
      if (acts == last) source.request_stop();
    };
    const Outcome outcome = run_without_violation(job, {.on_act = stop}).outcome;
    EXPECT_EQ(outcome.end, Outcome::End::stopped) << outcome.error;
    expect_each_update_once(outcome, job.workers);
  }
}

TEST_P(EverySchedule, IsTheSameActByActWithTheSameSeed) {
  std::set<std::vector<std::string>> different;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto once = run_without_violation(options(seed), {}, true);
    const auto again = run_without_violation(options(seed), {}, true);
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
                    Case{core::Mode::central, "tuned:waiting=20%", "arrival"},
                    Case{core::Mode::central, "pdssp:low=1,high=4,beta=2", "arrival"},
                    Case{core::Mode::hybrid, "pfluent:s=1,p=0.5,beta=2", "notify"},
                    Case{core::Mode::peer, "pdssp:low=1,high=4,cap,beta=2", "notify+interval:auto"},
                    Case{core::Mode::hybrid, "asp", "notify"},
                    Case{core::Mode::hybrid, "pbsp:beta=2", "notify"},
                    Case{core::Mode::hybrid, "pssp:s=1,beta=2", "interval:2ms"},
                    Case{core::Mode::peer, "asp", "notify+interval:auto"},
                    Case{core::Mode::peer, "pbsp:beta=4", "notify"},
                    Case{core::Mode::peer, "pssp:s=1,beta=2", "notify+interval:auto"},
                    Case{core::Mode::peer, "tuned:waiting=20%", "notify+interval:auto"},
                    Case{core::Mode::hybrid, "tuned:staleness=1", "notify"},
                    Case{core::Mode::central, "tuned:progress", "arrival"},
                    Case{core::Mode::peer, "tuned:progress", "notify+interval:auto"}));

}  // namespace
}  // namespace starling::actor
