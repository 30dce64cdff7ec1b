/// Repeats the published simulation: 1000 workers, 40 s, steps of Exp(100 ms), a fresh draw at each
/// arrival (Wang, Catterall, Mortier, arXiv 1709.07772, first two figures). Their staleness 4 is
/// s = 5 here, because their workers wait when the lag reaches the staleness.
#include <gtest/gtest.h>

#include <cmath>

#include "starling/base/straggler.hpp"
#include "tests/engine/sim/step_runs.hpp"

namespace starling::sim {
namespace {

constexpr std::size_t workers = 1000;

/// Returns the standard deviation of the workers' steps.
double sd_over_workers(const StepResult& result) {
  const double center = mean_step(result);
  double squares = 0;
  for (const Step step : result.steps) {
    const double difference = static_cast<double>(step) - center;
    squares += difference * difference;
  }
  return std::sqrt(squares / static_cast<double>(result.steps.size()));
}

/// The mean step, averaged over the seeds, must be in [least, most]. The results of barriers over
/// all workers vary more and need more seeds.
struct Figure {
  const char* barrier;
  double least;
  double most;
  std::uint64_t seeds = 20;
};

class Published : public testing::TestWithParam<Figure> {};

TEST_P(Published, MeanIsReproduced) {
  const auto [barrier, least, most, seeds] = GetParam();
  const auto results = runs(options_of(barrier, workers), sanitized ? 1 : seeds);
  const double found = mean(figures(results, mean_step));
  const double margin = sanitized ? 5 : 0;
  EXPECT_GE(found, least - margin);
  EXPECT_LE(found, most + margin);
}

INSTANTIATE_TEST_SUITE_P(
    Figures, Published,
    testing::Values(Figure{"bsp", 53, 55, 40}, Figure{"ssp:s=4", 200, 204, 60},
                    Figure{"ssp:s=5", 220, 224, 60}, Figure{"pbsp:beta=4", 337, 345},
                    Figure{"pbsp:beta=10", 257, 260}, Figure{"pbsp:beta=16", 217, 221},
                    Figure{"pssp:s=4,beta=10", 364, 369}, Figure{"pssp:s=5,beta=10", 369, 374},
                    Figure{"asp", 398, 402}),
    [](const auto& param) {
      std::string name = param.param.barrier;
      std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
      return name;
    });

/// Without a barrier a worker makes a Poisson number of steps: mean 400, standard deviation 20.
TEST(PublishedSpread, OfAspIsThatOfAPoissonDistribution) {
  const auto results = runs(options_of("asp", workers), sanitized ? 1 : 20);
  const double sd = mean(figures(results, sd_over_workers));
  EXPECT_GE(sd, 19);
  EXPECT_LE(sd, 21);
}

TEST(Published, ProgressAndSpreadRiseFromBspToAsp) {
  double progress = 0;
  double spread = 0;
  for (const char* barrier : {"bsp", "ssp:s=4", "pbsp:beta=10", "pssp:s=4,beta=10", "asp"}) {
    const auto results = runs(options_of(barrier, workers), sanitized ? 1 : 5);
    const double next_progress = mean(figures(results, mean_step));
    const double next_spread = mean(figures(results, sd_over_workers));
    EXPECT_GT(next_progress, progress) << barrier;
    EXPECT_GT(next_spread, spread) << barrier;
    progress = next_progress;
    spread = next_spread;
  }
}

TEST(Published, ProgressAndSpreadFallWithTheSampleSize) {
  if (sanitized) GTEST_SKIP() << "runs the code of the tests above, for long";
  double progress = 1e9;
  double spread = 1e9;
  for (const char* beta : {"0", "1", "2", "4", "8", "16", "32", "64"}) {
    const auto result = simulate(options_of(std::string{"pbsp:beta="} + beta, workers));
    EXPECT_LT(mean_step(result), progress) << beta;
    EXPECT_LT(sd_over_workers(result), spread) << beta;
    progress = mean_step(result);
    spread = sd_over_workers(result);
  }
}

/// Returns the ratio of the mean step with 5 % of stragglers, which are 4 times slower, to the mean
/// step without stragglers. If only the stragglers themselves lost steps, it would be 0.9625.
double progress_with_stragglers(const char* barrier) {
  auto options = options_of(barrier, workers);
  const double before = mean(figures(runs(options, 3), mean_step));
  options.slowness = slowdown_factors({parse_straggler("5%:4x").value()}, workers).value();
  return mean(figures(runs(options, 3), mean_step)) / before;
}

TEST(Stragglers, SlowSampledBarriersLittleAndFullViewsMuch) {
  if (sanitized) GTEST_SKIP() << "runs the code of the tests above, for long";
  EXPECT_NEAR(progress_with_stragglers("asp"), 0.9625, 0.005);
  EXPECT_GT(progress_with_stragglers("pbsp:beta=10"), 0.9);
  EXPECT_GT(progress_with_stragglers("pssp:s=4,beta=10"), 0.9);
  EXPECT_LT(progress_with_stragglers("bsp"), 0.45);
  EXPECT_LT(progress_with_stragglers("ssp:s=4"), 0.45);
}

}  // namespace
}  // namespace starling::sim
