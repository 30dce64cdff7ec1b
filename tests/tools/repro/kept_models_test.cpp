#include "starling/tools/repro/kept_models.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

/// Returns the time and the updates of each point of the curve.
std::vector<std::pair<double, double>> points_of(const KeptModels& models) {
  const std::vector<double> accuracies(models.models().size());
  std::vector<std::pair<double, double>> points;
  for (const TrainingPoint& point : models.curve(accuracies))
    points.emplace_back(point.seconds, point.updates);
  return points;
}

using Points = std::vector<std::pair<double, double>>;

TEST(KeptModels, AreTheNewestBeforeEachInstant) {
  KeptModels models{8, 4};
  for (const double second : {0.5, 1.5, 2.5, 3.9, 4.0, 7.0}) models.record(second, 10 * second, {});
  models.record_end(80, {});
  EXPECT_EQ(models.models().size(), 4U);
  EXPECT_EQ(points_of(models), (Points{{2, 15}, {4, 39}, {6, 40}, {8, 80}}));
}

TEST(KeptModels, CountForLaterInstantsWithoutNewModels) {
  KeptModels models{10, 5};
  models.record(2.5, 1, {});
  models.record(6.5, 2, {});
  models.record_end(3, {});
  EXPECT_EQ(models.models().size(), 3U);
  EXPECT_EQ(points_of(models), (Points{{4, 1}, {6, 1}, {8, 2}, {10, 3}}));
}

TEST(KeptModels, OfARunWithoutRecordsAreItsLast) {
  KeptModels models{10, 5};
  models.record_end(3, {});
  EXPECT_EQ(points_of(models), (Points{{10, 3}}));
}

TEST(KeptModels, RecordedAfterTheLastInstantAreReplacedByTheOneAtTheEnd) {
  KeptModels models{10, 5};
  models.record(1, 1, {});
  models.record(10.5, 2, {});
  models.record_end(3, {});
  EXPECT_EQ(points_of(models), (Points{{2, 1}, {4, 1}, {6, 1}, {8, 1}, {10, 3}}));
}

TEST(KeptModels, RecordedAfterTheEndReplaceThoseOfTheLastInterval) {
  KeptModels models{10, 5};
  models.record(9, 1, {});
  models.record(10.5, 2, {});
  models.record_end(3, {});
  EXPECT_EQ(models.models().size(), 1U);
  EXPECT_EQ(points_of(models), (Points{{10, 3}}));
}

TEST(KeptModels, HaveNoOptimiserState) {
  KeptModels models{1, 1};
  core::RangeState state;
  state.value = {core::Buffer::make<float>(4), 0, 4, nullptr};
  state.slots = {core::Buffer::make<float>(8), 0, 8, nullptr};
  models.record_end(1, {state});
  EXPECT_EQ(models.models().front().states.front().value.count, 4U);
  EXPECT_TRUE(models.models().front().states.front().slots.empty());
}

}  // namespace
}  // namespace starling::program
