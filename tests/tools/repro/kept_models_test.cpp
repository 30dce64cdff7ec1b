#include "starling/tools/repro/kept_models.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

/// Time and updates of each point.
std::vector<std::pair<double, double>> points_of(const KeptModels& models) {
  const std::vector<double> accuracies(models.kept().size());
  std::vector<std::pair<double, double>> points;
  for (const TrainingPoint& point : models.curve(accuracies))
    points.emplace_back(point.seconds, point.updates);
  return points;
}

using Points = std::vector<std::pair<double, double>>;

TEST(KeptModels, AreTheNewestAtEachInstant) {
  KeptModels models{8, 4};
  for (const double second : {0.5, 1.5, 2.5, 3.9, 4.0, 7.0}) models.see(second, 10 * second, {});
  models.end(80, {});
  EXPECT_EQ(models.kept().size(), 4U);
  EXPECT_EQ(points_of(models), (Points{{2, 15}, {4, 39}, {6, 40}, {8, 80}}));
}

TEST(KeptModels, StandForInstantsWithoutNews) {
  KeptModels models{10, 5};
  models.see(2.5, 1, {});
  models.see(6.5, 2, {});
  models.end(3, {});
  EXPECT_EQ(models.kept().size(), 3U);
  EXPECT_EQ(points_of(models), (Points{{4, 1}, {6, 1}, {8, 2}, {10, 3}}));
}

TEST(KeptModels, OfARunWithoutNewsAreItsLast) {
  KeptModels models{10, 5};
  models.end(3, {});
  EXPECT_EQ(points_of(models), (Points{{10, 3}}));
}

TEST(KeptModels, SeenTooLateAreTheLast) {
  KeptModels models{10, 5};
  models.see(1, 1, {});
  models.see(10.5, 2, {});
  models.end(3, {});
  EXPECT_EQ(points_of(models), (Points{{2, 1}, {4, 1}, {6, 1}, {8, 1}, {10, 3}}));
}

TEST(KeptModels, CarryNoOptimiserState) {
  KeptModels models{1, 1};
  core::RangeState state;
  state.value = {core::Buffer::make<float>(4), 0, 4, nullptr};
  state.slots = {core::Buffer::make<float>(8), 0, 8, nullptr};
  models.end(1, {state});
  EXPECT_EQ(models.kept().front().states.front().value.count, 4U);
  EXPECT_TRUE(models.kept().front().states.front().slots.empty());
}

}  // namespace
}  // namespace starling::program
