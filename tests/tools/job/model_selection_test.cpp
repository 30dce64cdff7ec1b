#include "starling/tools/job/model_selection.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace starling::program {
namespace {

/// Adds evaluations with these losses at the steps 1, 2, and so on, until patience is over. Returns
/// that step, or 0 if patience is not over after the last.
std::size_t patience_over_at(ModelSelection& selection, const std::vector<double>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    selection.add_evaluation(static_cast<double>(i + 1), {{"loss", losses[i]}, {"accuracy", 1}},
                             {});
    if (selection.is_patience_over()) return i + 1;
  }
  return 0;
}

TEST(ModelSelection, PatienceIsOverAfterThatManyEvaluationsWithoutGain) {
  ModelSelection selection{2, false};
  EXPECT_EQ(patience_over_at(selection, {3, 2, 2.5, 1, 1.5, 1.2, 0.1}), 6U);
  EXPECT_EQ(selection.best()->step, 4);
  EXPECT_EQ(selection.best()->loss, 1);
}

/// A later evaluation may change the best model, but patience stays over.
TEST(ModelSelection, PatienceStaysOver) {
  ModelSelection selection{1, false};
  EXPECT_EQ(patience_over_at(selection, {1, 2}), 2U);
  selection.add_evaluation(3, {{"loss", 0.5}}, {});
  EXPECT_TRUE(selection.is_patience_over());
  EXPECT_EQ(selection.best()->step, 3);
}

TEST(ModelSelection, NeverEndsAJobWithoutPatience) {
  ModelSelection selection{0, false};
  EXPECT_EQ(patience_over_at(selection, std::vector<double>(100, 1.0)), 0U);
  EXPECT_EQ(selection.best()->step, 1);
}

TEST(ModelSelection, DoesNotCountTinyGains) {
  ModelSelection selection{3, false};
  EXPECT_EQ(patience_over_at(selection, {1, 0.9999, 0.9998, 0.9997, 0.5}), 4U);
  EXPECT_EQ(selection.best()->step, 4) << "the best is the smallest, by however little";
}

TEST(ModelSelection, AddsTinyGainsUpToAGain) {
  ModelSelection selection{3, false};
  std::vector<double> losses;
  for (int i = 0; i < 50; ++i) losses.push_back(1 - 0.0004 * i);
  EXPECT_EQ(patience_over_at(selection, losses), 0U);
}

TEST(ModelSelection, TakesNegativeLosses) {
  ModelSelection selection{2, false};
  EXPECT_EQ(patience_over_at(selection, {1, -1, -2, -3, -3, -3}), 6U);
  EXPECT_EQ(selection.best()->step, 4);
}

TEST(ModelSelection, CountsLossesThatAreNotFiniteAsNoBetter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ModelSelection selection{2, false};
  EXPECT_EQ(patience_over_at(selection, {nan, nan}), 2U);
  EXPECT_FALSE(selection.best());
  ModelSelection later{3, false};
  EXPECT_EQ(patience_over_at(later, {1, nan, std::numeric_limits<double>::infinity(), nan}), 4U);
  EXPECT_EQ(later.best()->step, 1);
}

TEST(ModelSelection, HasNoBestModelWithoutALoss) {
  ModelSelection selection{0, true};
  selection.add_evaluation(1, {{"accuracy", 1}}, {});
  EXPECT_FALSE(selection.best());
}

TEST(ModelSelection, KeepsTheBestStatesOnlyIfAskedTo) {
  for (const bool keeps_states : {true, false}) {
    ModelSelection selection{0, keeps_states};
    for (const auto& [updates, loss] : {std::pair{10, 2.0}, {20, 1.0}, {30, 3.0}}) {
      core::RangeState state;
      state.updates = static_cast<std::uint64_t>(updates);
      selection.add_evaluation(updates, {{"loss", loss}}, {state});
    }
    ASSERT_EQ(selection.best()->states.size(), keeps_states ? 1U : 0U);
    for (const auto& state : selection.best()->states) EXPECT_EQ(state.updates, 20U);
  }
}

TEST(Keep, IsBestOrLast) {
  EXPECT_EQ(parse_keep("best").value(), Keep::best);
  EXPECT_EQ(print(parse_keep("last").value()), "last");
  EXPECT_EQ(parse_keep("all").error().message, "'all' is not a model to keep; valid: best, last");
}

}  // namespace
}  // namespace starling::program
