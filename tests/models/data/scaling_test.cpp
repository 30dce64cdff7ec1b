#include "starling/models/data/scaling.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::models {
namespace {

/// Returns a dense table of these values, row by row.
Table dense(std::vector<float> values, std::vector<float> labels, std::size_t classes = 0) {
  const std::size_t features = values.size() / labels.size();
  Table table{features, classes, Table::Dense{std::move(values)}, std::move(labels)};
  table.labelling.classes = classes;
  return table;
}

/// Returns the rows (1, 0), (0, 0), (3, -8), (0, 0), with stored entries for 1, 3 and -8 only.
Table sparse() {
  Table::Sparse x;
  x.starts = {0, 1, 1, 3, 3};
  x.columns = {0, 0, 1};
  x.values = {1, 3, -8};
  return Table{2, 2, std::move(x), {0, 1, 0, 1}};
}

/// Scales a table by its own statistics.
Table scaled_by_itself(Scale method, const Table& table) {
  return scaled(table, fit(method, table), fit_targets(method, table));
}

TEST(Scaling, BringsEachFeatureToMeanZeroAndDeviationOne) {
  const Table made = scaled_by_itself(Scale::standard,
                                      dense({1, 1000, 2, 3000, 3, 5000, 4, 7000}, {0, 1, 0, 1}, 2));
  for (std::size_t feature = 0; feature < 2; ++feature) {
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < 4; ++row) {
      const auto x = static_cast<double>(made.dense_row(row)[feature]);
      sum += x;
      squares += x * x;
    }
    EXPECT_NEAR(sum, 0, 1e-6);
    EXPECT_NEAR(squares / 4, 1, 1e-6);
  }
  EXPECT_EQ(made.label(1), 1) << "class indices are not scaled";
}

TEST(Scaling, BringsEachFeatureFromZeroToOne) {
  const Table made = scaled_by_itself(Scale::minmax, dense({-2, 10, 0, 30, 2, 20}, {0, 1, 0}, 2));
  EXPECT_EQ(std::vector(made.dense_row(0).begin(), made.dense_row(0).end()),
            (std::vector<float>{0, 0}));
  EXPECT_EQ(std::vector(made.dense_row(1).begin(), made.dense_row(1).end()),
            (std::vector<float>{0.5F, 1}));
}

TEST(Scaling, DividesADifferenceThatNoFloatHolds) {
  std::vector<float> values(20, -3e38F);
  values[0] = 3e38F;
  const Table made =
      scaled_by_itself(Scale::standard, dense(std::move(values), std::vector<float>(20)));
  EXPECT_NEAR(made.dense_row(0)[0], std::sqrt(19), 1e-5);
  EXPECT_NEAR(made.dense_row(1)[0], -1 / std::sqrt(19), 1e-5);
}

TEST(Scaling, OnlyShiftsAFeatureThatIsTheSameInAllRows) {
  for (const Scale method : {Scale::standard, Scale::minmax}) {
    const Table made = scaled_by_itself(method, dense({0.1F, 0.1F, 0.1F}, {0, 1, 0}, 2));
    for (std::size_t row = 0; row < 3; ++row) EXPECT_NEAR(made.dense_row(row)[0], 0, 1e-8);
  }
}

TEST(Scaling, UsesStatisticsOfTheTrainingDataAlone) {
  const Table train = dense({0, 2}, {0, 1}, 2);
  const Table test = dense({101}, {1}, 2);
  const Table made = scaled(test, fit(Scale::standard, train), fit_targets(Scale::standard, train));
  EXPECT_FLOAT_EQ(made.dense_row(0)[0], 100);
  EXPECT_EQ(made.select({}).scaling, made.scaling) << "a selection keeps the scaling";
}

TEST(Scaling, LeavesTheZerosOfSparseDataAlone) {
  const Table standard = scaled_by_itself(Scale::standard, sparse());
  ASSERT_EQ(standard.entries(), 3U);
  // The mean of 1, 0, 3, 0 is 1 and the deviation sqrt(1.5).
  EXPECT_NEAR(standard.sparse_row(0).values[0], 1 / std::sqrt(1.5), 1e-6);
  EXPECT_NEAR(standard.sparse_row(2).values[1], -8 / std::sqrt(12), 1e-6);
  const Table minmax = scaled_by_itself(Scale::minmax, sparse());
  EXPECT_FLOAT_EQ(minmax.sparse_row(0).values[0], 1.0F / 3);
  EXPECT_FLOAT_EQ(minmax.sparse_row(2).values[1], -1);
}

TEST(Scaling, ScalesRealTargetsAndRestoresThem) {
  for (const Scale method : {Scale::standard, Scale::minmax}) {
    const Table made = scaled_by_itself(method, dense({1, 2, 3}, {100, 200, 600}));
    EXPECT_LT(std::abs(made.label(2)), 2);
    const std::vector<double> targets{100, 200, 600};
    for (std::size_t row = 0; row < 3; ++row)
      EXPECT_NEAR(made.labelling.original(made.label(row)), targets[row], 1e-4);
  }
}

TEST(Scaling, NoneScalesNothing) {
  const Table table = dense({5, 7}, {100, 300});
  const Table made = scaled_by_itself(Scale::none, table);
  EXPECT_EQ(made.dense_row(1)[0], 7);
  EXPECT_EQ(made.label(1), 300);
  EXPECT_TRUE(made.scaling.shift.empty());
}

TEST(Scaling, ReadsThePrintedMethod) {
  for (const Scale method : {Scale::none, Scale::standard, Scale::minmax})
    EXPECT_EQ(parse_scale(print(method)).value(), method);
  const auto wrong = parse_scale("maxmin");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("'maxmin' is not a scaling method; valid: none"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::models
