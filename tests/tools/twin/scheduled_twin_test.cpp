// Checks in virtual time that the real actors do what the simulators predict: that of steps, and
// for barriers with rounds that of messages. The schedule lets only the delays take time. The
// figures do not depend on the machine's load, and the same seed gives the same run.
#include <gtest/gtest.h>

#include <algorithm>

#include "starling/base/seconds.hpp"
#include "starling/engine/sim/protocol/learn.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "starling/tools/twin/twin.hpp"
#include "tests/actor/cluster/small_jobs.hpp"
#include "tests/actor/job/schedule.hpp"
#include "tests/models/model_data.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

struct Case {
  core::Mode mode;
  const char* barrier;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << core::print(tested.mode) << " " << tested.barrier;
}

class ScheduledTwin : public testing::TestWithParam<Case> {
 protected:
  static actor::TrainOptions options() {
    actor::TrainOptions options;
    options.job.mode = GetParam().mode;
    options.job.barrier = barrier::parse(GetParam().barrier).value();
    options.batch = 1;
    return options;
  }

  /// Trains the smallest model, because only the times matter.
  static actor::Progress run_live(actor::TrainOptions options) {
    actor::Schedule schedule{options.job.seed};
    schedule.prompt = true;
    schedule.acts_max = 100'000'000;
    options.job.evaluate_train = false;
    options.job = schedule.scheduled(options.job);
    const auto data = actor::load("linear:d=1,n=" + std::to_string(samples));
    const auto outcome = actor::train_text("linear", data, nullptr, options);
    EXPECT_TRUE(outcome.error.empty()) << outcome.error;
    EXPECT_FALSE(schedule.stuck());
    return outcome.last;
  }

  static sim::StepOptions simulation_of(const actor::JobOptions& job) {
    sim::StepOptions options;
    options.mode = job.mode;
    options.workers = job.workers;
    options.barrier = job.barrier;
    options.recheck = job.recheck.value_or(core::default_recheck(job.mode));
    options.step_time = job.delay;
    options.slowness = slowdown_factors(job.stragglers, job.workers).value();
    options.steps_max = job.steps;
    options.horizon = job.time.value_or(1h);
    options.points = 1;
    return options;
  }

  /// Simulates a job with a model and data of its own: only the times matter.
  static RunFigures simulate_by_messages(const actor::TrainOptions& options, core::Time end,
                                         std::uint64_t seed) {
    static const models::Table data = models::dense_table(samples, 1, 2);
    static const auto model =
        models::Softmax<double>::parse(Spec::parse("softmax").value(), data).value();
    sim::LearnOptions learn;
    learn.batch = options.batch;
    learn.protocol.mode = options.job.mode;
    learn.protocol.barrier = options.job.barrier;
    learn.protocol.workers = options.job.workers;
    learn.protocol.step_time = options.job.delay;
    learn.protocol.seed = seed;
    learn.protocol.horizon = learn.protocol.point_every.emplace(1h);
    sim::Protocol protocol{learn.protocol, sim::make_job(model, data, learn, {})};
    protocol.stop(end);
    EXPECT_TRUE(protocol.run()) << protocol.error();
    sim::ProtocolResult result = protocol.result();
    std::ranges::sort(result.steps);
    return {.updates = static_cast<double>(result.updates),
            .steps_min = static_cast<double>(result.steps.front()),
            .steps_median = static_cast<double>(result.steps[result.steps.size() / 2]),
            .steps_max = static_cast<double>(result.steps.back()),
            .max_lag = static_cast<double>(result.max_lag),
            .waiting_share = result.waiting_share,
            .elapsed_s = in_seconds(result.elapsed)};
  }

  /// A job of workers whose steps take 20 ms on average, for `time`.
  static actor::TrainOptions random_steps(std::size_t workers, core::Time time) {
    auto options = ScheduledTwin::options();
    options.job.workers = workers;
    options.job.delay = parse_distribution("exp:20ms").value();
    options.job.time = time;
    return options;
  }

  /// Returns the figures of the live run that do not agree with the simulations.
  static std::vector<std::string> figures_outside(const actor::Progress& end,
                                                  const std::vector<RunFigures>& simulated) {
    EXPECT_LT(end.mean_work_time, 2us)
        << "timers count whole microseconds; everything else takes no time";
    std::vector<std::string> outside;
    for (const FigureComparison& compared : compare(figures_of(end), simulated, false))
      if (!compared.is_inside())
        outside.push_back(compared.name + " " + std::to_string(compared.live) + ", allowed " +
                          std::to_string(compared.allowed_min) + " to " +
                          std::to_string(compared.allowed_max));
    return outside;
  }

  /// Runs a job under the case's barrier, and simulates its steps under `simulated_barrier`.
  static std::vector<std::string> figures_outside(const barrier::Barrier& simulated_barrier,
                                                  core::Time time) {
    const auto options = random_steps(50, time);
    const actor::Progress end = run_live(options);
    auto simulation = simulation_of(options.job);
    simulation.barrier = simulated_barrier;
    simulation.horizon = end.elapsed;
    std::vector<RunFigures> simulated;
    for (simulation.seed = 1; simulation.seed <= 200; ++simulation.seed)
      simulated.push_back(simulate_twin(simulation));
    return figures_outside(end, simulated);
  }

  static constexpr std::size_t samples = 5'000;
};

/// 50 workers whose steps take 20 ms on average: each figure must be between the 0.5 % and the
/// 99.5 % quantile of 200 simulations, widened by 5 % on either side.
TEST_P(ScheduledTwin, HasFiguresThatAgreeWithItsSimulations) {
  EXPECT_EQ(figures_outside(options().job.barrier, 2s), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(
    Of, ScheduledTwin,
    testing::Values(
        Case{core::Mode::central, "bsp"}, Case{core::Mode::central, "ssp:s=4"},
        Case{core::Mode::central, "asp"}, Case{core::Mode::central, "pbsp:beta=2"},
        Case{core::Mode::central, "pbsp:beta=10"}, Case{core::Mode::central, "pssp:s=4,beta=2"},
        Case{core::Mode::central, "pssp:s=4,beta=10"}, Case{core::Mode::hybrid, "pssp:s=4,beta=2"},
        Case{core::Mode::peer, "asp"}, Case{core::Mode::peer, "pbsp:beta=2"},
        Case{core::Mode::peer, "pbsp:beta=10"}, Case{core::Mode::peer, "pssp:s=4,beta=2"},
        Case{core::Mode::peer, "pssp:s=4,beta=10"},
        Case{core::Mode::central, "pdssp:low=3,high=15,beta=2"},
        Case{core::Mode::peer, "pdssp:low=3,high=15,beta=2"},
        Case{core::Mode::hybrid, "pfluent:s=4,p=0.5,beta=2"},
        Case{core::Mode::central, "quorum:q=0.9"}, Case{core::Mode::peer, "pquorum:q=0.9,beta=10"},
        Case{core::Mode::peer, "pssp:s=4,beta=2,draw=speed"},
        Case{core::Mode::hybrid, "pbsp:beta=2,draw=speed"},
        Case{core::Mode::peer, "pssp:s=4,beta=2,draw=availability"},
        Case{core::Mode::peer, "tuned:waiting=5%"}, Case{core::Mode::central, "tuned:waiting=5%"},
        Case{core::Mode::peer, "tuned:staleness=3"}));

/// Barriers that the simulation of steps does not have, and two that it has: 60 simulations message
/// by message.
class ScheduledTwinByMessages : public ScheduledTwin {};

TEST_P(ScheduledTwinByMessages, HasFiguresThatAgreeWithItsSimulations) {
  auto options = random_steps(16, 2s);
  options.batch = 8;
  const actor::Progress end = run_live(options);
  std::vector<RunFigures> simulated;
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    simulated.push_back(simulate_by_messages(options, end.elapsed, seed));
  EXPECT_EQ(figures_outside(end, simulated), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Of, ScheduledTwinByMessages,
                         testing::Values(Case{core::Mode::central, "bsp"},
                                         Case{core::Mode::peer, "pssp:s=4,beta=2"},
                                         Case{core::Mode::central, "ebsp:ahead=15"},
                                         Case{core::Mode::central, "absp"}));

/// Shows that the check can fail: under pbsp workers wait more than under pssp.
class ScheduledTwinOfAnotherBarrier : public ScheduledTwin {};

TEST_P(ScheduledTwinOfAnotherBarrier, HasFiguresThatDoNotAgree) {
  EXPECT_NE(figures_outside(barrier::parse("pbsp:beta=2").value(), 500ms),
            std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Of, ScheduledTwinOfAnotherBarrier,
                         testing::Values(Case{core::Mode::central, "pssp:s=1,beta=2"},
                                         Case{core::Mode::peer, "pssp:s=1,beta=2"},
                                         Case{core::Mode::central, "pbsp:beta=3"}));

/// Jobs without randomness: constant delays, and barriers that see all other workers or none.
class ScheduledTwinWithoutChance : public ScheduledTwin {};

TEST_P(ScheduledTwinWithoutChance, EqualsItsSimulation) {
  auto options = this->options();
  options.job.workers = 7;
  options.job.delay = parse_distribution("const:10ms").value();
  // With these factors, steps end at the same time only if their workers are equally slow.
  options.job.stragglers = {{.count = 1, .factor = 1.703}, {.count = 2, .factor = 2.917}};
  options.job.steps = 40;
  const RunFigures live = figures_of(run_live(options));
  const RunFigures simulated = simulate_twin(simulation_of(options.job));
  EXPECT_EQ(live.updates, 280);
  EXPECT_EQ(live.max_lag, simulated.max_lag);
  EXPECT_DOUBLE_EQ(live.elapsed_s, simulated.elapsed_s);
  EXPECT_DOUBLE_EQ(live.waiting_share, simulated.waiting_share);
}

INSTANTIATE_TEST_SUITE_P(Of, ScheduledTwinWithoutChance,
                         testing::Values(Case{core::Mode::central, "bsp"},
                                         Case{core::Mode::central, "ssp:s=3"},
                                         Case{core::Mode::central, "asp"},
                                         Case{core::Mode::peer, "asp"},
                                         Case{core::Mode::central, "pbsp:beta=6"},
                                         Case{core::Mode::central, "dssp:low=2,high=6"},
                                         Case{core::Mode::central, "fluent:s=3,p=1"}));

}  // namespace
}  // namespace starling::program
