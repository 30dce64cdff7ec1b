/// Tests that both levels of the simulator agree: over a network without delays, the simulation by
/// messages makes as many steps, and waits as long, as the simulation of steps.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "starling/engine/sim/protocol/protocol.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/engine/work/gradients.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Mode;

constexpr std::uint64_t seeds = 12;
constexpr std::size_t workers = 24;
constexpr Time horizon = 4s;

/// A job of one number that no update changes.
Job idle_job() {
  core::Layout layout;
  layout.parameters = {{.name = "idle", .shape = {1}}};
  layout.offsets = {0};
  layout.ranges = {{0, 1, 0, {{0, 0, 0, 1}}}};
  layout.size = 1;
  Job job;
  job.initial_states = core::to_ranges<float>(layout, std::vector<float>{0});
  job.layout = std::make_shared<const core::Layout>(std::move(layout));
  job.applier = core::merge_applier<float>([](const auto&, auto, auto) {});
  job.compute = [](MemberId, const core::Compute& read) {
    return core::Update{.parts = {{0, read.values[0].value}}, .samples = 1};
  };
  return job;
}

struct Sample {
  std::vector<double> values;

  [[nodiscard]] double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  /// The estimated variance of mean().
  [[nodiscard]] double variance() const {
    double sum = 0;
    for (const double value : values) sum += (value - mean()) * (value - mean());
    const auto n = static_cast<double>(values.size());
    return sum / (n - 1) / n;
  }
};

/// Returns the difference of two samples' means, in standard errors of the difference (Welch).
double standard_errors_apart(const Sample& a, const Sample& b) {
  const double error = std::sqrt(a.variance() + b.variance());
  return error > 0 ? (a.mean() - b.mean()) / error : 0;
}

struct LevelsCase {
  Mode mode;
  const char* barrier;
  const char* recheck;
  const char* straggler = "1:4x";
};

void PrintTo(const LevelsCase& c, std::ostream* out) {
  *out << core::print(c.mode) << " " << c.barrier << " " << c.recheck << " " << c.straggler;
}

class BothLevels : public testing::TestWithParam<LevelsCase> {};

TEST_P(BothLevels, MakeEquallyManyStepsAndWaitEquallyLong) {
  const auto [mode, barrier, recheck, straggler] = GetParam();
  const Distribution step_time{laws::Exponential{100ms}};
  const std::vector<StragglerRule> stragglers{parse_straggler(straggler).value()};
  const auto slowness = slowdown_factors(stragglers, workers).value();
  const auto away = absences(stragglers, workers).value();
  Sample steps[2];
  Sample waiting[2];
  Sample draws[2];
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    StepOptions step_level;
    step_level.workers = workers;
    step_level.barrier = barrier::parse(barrier).value();
    step_level.mode = mode;
    step_level.recheck = barrier::parse_recheck(recheck).value();
    step_level.step_time = step_time;
    step_level.slowness = slowness;
    step_level.absences = away;
    step_level.horizon = horizon;
    step_level.seed = seed;
    const StepResult a = simulate(step_level);

    ProtocolOptions protocol_level;
    protocol_level.mode = mode;
    protocol_level.barrier = step_level.barrier;
    protocol_level.recheck = step_level.recheck;
    protocol_level.workers = workers;
    protocol_level.step_time = step_time;
    protocol_level.slowness = slowness;
    protocol_level.absences = away;
    protocol_level.horizon = horizon;
    protocol_level.seed = seed + 1000;
    Protocol protocol{protocol_level, idle_job()};
    ASSERT_TRUE(protocol.run()) << protocol.error();
    const ProtocolResult b = protocol.result();

    const double n = workers;
    steps[0].values.push_back(static_cast<double>(a.updates) / n);
    steps[1].values.push_back(static_cast<double>(b.updates) / n);
    waiting[0].values.push_back(a.waiting_share);
    waiting[1].values.push_back(b.waiting_share);
    draws[0].values.push_back(static_cast<double>(a.draws));
    draws[1].values.push_back(static_cast<double>(b.draws));
  }
  EXPECT_LT(std::abs(standard_errors_apart(steps[0], steps[1])), 4)
      << steps[0].mean() << ", " << steps[1].mean();
  EXPECT_LT(std::abs(standard_errors_apart(waiting[0], waiting[1])), 4)
      << waiting[0].mean() << ", " << waiting[1].mean();
  EXPECT_LT(std::abs(standard_errors_apart(draws[0], draws[1])), 4)
      << draws[0].mean() << ", " << draws[1].mean();
}

INSTANTIATE_TEST_SUITE_P(
    Of, BothLevels,
    testing::Values(
        LevelsCase{Mode::central, "bsp", "arrival"},
        LevelsCase{Mode::central, "ssp:s=2", "arrival"},
        LevelsCase{Mode::central, "asp", "arrival"},
        LevelsCase{Mode::central, "pbsp:beta=3", "arrival"},
        LevelsCase{Mode::central, "pssp:s=2,beta=3", "arrival"},
        LevelsCase{Mode::peer, "asp", "notify"}, LevelsCase{Mode::peer, "pbsp:beta=3", "notify"},
        LevelsCase{Mode::peer, "pbsp:beta=3", "interval:20ms"},
        LevelsCase{Mode::peer, "pssp:s=2,beta=3", "notify+interval:auto"},
        LevelsCase{Mode::hybrid, "pssp:s=2,beta=3", "notify+interval:auto"},
        LevelsCase{Mode::central, "tuned:waiting=20%", "arrival"},
        LevelsCase{Mode::peer, "tuned:waiting=20%", "notify+interval:auto"},
        LevelsCase{Mode::hybrid, "tuned:staleness=1", "notify+interval:auto"},
        LevelsCase{Mode::peer, "pbsp:beta=3,draw=speed", "notify+interval:auto"},
        LevelsCase{Mode::central, "dssp:low=2,high=6", "arrival"},
        LevelsCase{Mode::central, "fluent:s=2,p=0.5", "arrival"},
        LevelsCase{Mode::central, "pdssp:low=2,high=6,beta=3", "arrival"},
        LevelsCase{Mode::hybrid, "pdssp:low=2,high=6,beta=3", "notify"},
        LevelsCase{Mode::peer, "pdssp:low=2,high=6,cap,beta=3", "interval:20ms"},
        LevelsCase{Mode::peer, "pfluent:s=2,p=0.5,beta=3", "notify+interval:auto"},
        LevelsCase{Mode::peer, "pdssp:low=2,high=6,beta=3,draw=speed", "notify+interval:auto"},
        LevelsCase{Mode::hybrid, "pfluent:s=2,p=0.5,beta=3", "interval:20ms", "3:away=2s/3s"},
        LevelsCase{Mode::central, "bsp", "arrival", "24:away=200ms/500ms"},
        LevelsCase{Mode::central, "pbsp:beta=3", "arrival", "24:away=200ms/500ms"},
        LevelsCase{Mode::central, "tuned:waiting=5%", "notify+interval:auto", "24:away=1s/2s"},
        LevelsCase{Mode::hybrid, "pbsp:beta=3", "interval:20ms", "3:away=2s/3s"},
        LevelsCase{Mode::hybrid, "pssp:s=2,beta=3,draw=availability", "notify+interval:auto",
                   "5:away=1500ms/3s"}));

}  // namespace
}  // namespace starling::sim
