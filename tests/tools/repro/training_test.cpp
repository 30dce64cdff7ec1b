#include "starling/tools/repro/training.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::program {
namespace {

/// Returns a run that ends with `updates` updates, evaluated ten times. Its last two accuracies are
/// `late` - `swing` and `late` + `swing`.
TrainingRun run_of(double updates, double late, double swing, std::uint64_t seed = 1) {
  TrainingRun run{.seed = seed};
  for (int i = 1; i <= 10; ++i)
    run.curve.push_back({static_cast<double>(i), updates * i / 10, late * std::min(i, 8) / 8});
  run.curve[8].accuracy = late - swing;
  run.curve[9].accuracy = late + swing;
  return run;
}

/// Returns two runs under `barrier`, with `updates` and `updates` + 2 updates.
BarrierRuns runs_of(const std::string& barrier, double updates, double late, double swing) {
  return {barrier::parse(barrier).value(),
          {run_of(updates, late, swing, 1), run_of(updates + 2, late, swing, 2)}};
}

/// Returns runs of the five barriers with the published figures.
std::vector<BarrierRuns> published() {
  return {runs_of("bsp", 132, 0.88, 0.01), runs_of("ssp:s=4", 426, 0.75, 0.06),
          runs_of("pbsp:beta=2", 270, 0.89, 0.01), runs_of("pssp:s=4,beta=2", 432, 0.85, 0.01),
          runs_of("asp", 444, 0.55, 0.1)};
}

ClaimStatus status_of(const ExperimentResults& results, const std::string& finding) {
  for (const Claim& claim : results.claims)
    if (claim.finding.starts_with(finding)) return claim.status;
  ADD_FAILURE() << "there is no claim on " << finding;
  return {};
}

TEST(TrainingClaims, AreReproducedByThePublishedFigures) {
  ExperimentResults results;
  add_training_claims(published(), results);
  ASSERT_EQ(results.claims.size(), 6U);
  for (const Claim& claim : results.claims)
    EXPECT_EQ(claim.status, ClaimStatus::reproduced) << claim.finding << ": " << claim.here;
  EXPECT_EQ(results.claims[0].here,
            "133; ssp:s=4 427, pbsp:beta=2 271, pssp:s=4,beta=2 433, asp 445");
  EXPECT_EQ(results.claims[1].here, "2.04 ± 0.01 times");
}

TEST(TrainingClaims, FailIfAnotherBarrierMakesFewerUpdatesThanBsp) {
  auto all = published();
  all[1] = runs_of("ssp:s=4", 120, 0.8, 0.01);
  ExperimentResults results;
  add_training_claims(all, results);
  EXPECT_EQ(status_of(results, "Updates at equal wall time"), ClaimStatus::not_reproduced);
}

TEST(TrainingClaims, FailIfSamplingGainsTooLittle) {
  auto all = published();
  all[2] = runs_of("pbsp:beta=2", 132 * 1.29, 0.89, 0.01);
  all[3] = runs_of("pssp:s=4,beta=2", 132 * 1.79, 0.85, 0.01);
  ExperimentResults results;
  add_training_claims(all, results);
  EXPECT_EQ(status_of(results, "Updates of pbsp:beta=2"), ClaimStatus::not_reproduced);
  EXPECT_EQ(status_of(results, "Updates of pssp:s=4,beta=2"), ClaimStatus::not_reproduced);
  EXPECT_EQ(status_of(results, "Updates at equal wall time"), ClaimStatus::reproduced);
}

TEST(TrainingClaims, FailIfTheLateAccuracyOfAspIsAsStableAndAsHighAsThatOfPssp) {
  auto all = published();
  all[4] = runs_of("asp", 444, 0.86, 0.009);
  ExperimentResults results;
  add_training_claims(all, results);
  EXPECT_EQ(status_of(results, "Late accuracy: pssp:s=4,beta=2 varies less than asp"),
            ClaimStatus::not_reproduced);
  EXPECT_EQ(status_of(results, "Late accuracy: pssp:s=4,beta=2 is above asp"),
            ClaimStatus::not_reproduced);
}

TEST(TrainingClaims, FailIfAnotherBarrierLearnsMoreFromAnUpdate) {
  auto all = published();
  for (TrainingRun& run : all[2].runs)
    for (TrainingPoint& point : run.curve) point.accuracy = 0.95;
  ExperimentResults results;
  add_training_claims(all, results);
  EXPECT_EQ(status_of(results, "Accuracy at equal updates"), ClaimStatus::not_reproduced);
}

TEST(TrainingClaims, AreMadeOnlyAboutTheBarriersThatRan) {
  ExperimentResults none;
  add_training_claims({runs_of("asp", 444, 0.5, 0.1), runs_of("ssp:s=4", 426, 0.7, 0.1)}, none);
  EXPECT_TRUE(none.claims.empty());
  ExperimentResults some;
  add_training_claims(
      {runs_of("pssp:s=2,beta=1", 300, 0.8, 0.01), runs_of("pssp:s=9,beta=0", 444, 0.5, 0.1)},
      some);
  ASSERT_EQ(some.claims.size(), 2U) << "pssp with beta=0 is asp";
  EXPECT_TRUE(some.claims[0].finding.starts_with("Late accuracy"));
}

TEST(LateAccuracy, IsTakenFromTheLastFifthOfThePointsAndFromTwoAtLeast) {
  TrainingRun run;
  for (int i = 0; i < 15; ++i) run.curve.push_back({1.0 * i, 1.0 * i, 0.1 * i});
  EXPECT_EQ(late_accuracy(run).count, 3U);
  EXPECT_NEAR(late_accuracy(run).mean, 1.3, 1e-12);
  EXPECT_NEAR(late_accuracy(run).sd, 0.1, 1e-12);
  run.curve.resize(3);
  EXPECT_EQ(late_accuracy(run).count, 2U);
  run.curve.resize(1);
  EXPECT_EQ(late_accuracy(run).count, 1U);
}

TEST(AccuracyAt, IsThatOfTheLastPointWithAtMostTheGivenUpdates) {
  const TrainingRun run{.curve = {{1, 10, 0.2}, {2, 20, 0.5}, {3, 30, 0.4}}};
  EXPECT_EQ(accuracy_at(run, 5), 0.2);
  EXPECT_EQ(accuracy_at(run, 20), 0.5);
  EXPECT_EQ(accuracy_at(run, 29), 0.5);
  EXPECT_EQ(accuracy_at(run, 100), 0.4);
}

TEST(MeanCurve, HasTheInstantsThatAllRunsHave) {
  const BarrierRuns all{barrier::parse("asp").value(),
                        {{.curve = {{1, 10, 0.1}, {2, 20, 0.2}, {3, 30, 0.4}}},
                         {.curve = {{2, 40, 0.4}, {3, 50, 0.8}}}}};
  const auto mean = mean_curve(all);
  ASSERT_EQ(mean.size(), 2U);
  EXPECT_NEAR(mean[0].seconds, 2, 1e-12);
  EXPECT_NEAR(mean[0].updates, 30, 1e-12);
  EXPECT_NEAR(mean[1].accuracy, 0.6, 1e-12);
  EXPECT_TRUE(mean_curve({barrier::parse("asp").value()}).empty());
}

}  // namespace
}  // namespace starling::program
