#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "starling/base/random.hpp"
#include "starling/models/data/describe.hpp"
#include "tests/models/data/files.hpp"

namespace starling::models {
namespace {

/// Returns a hash of all features and labels.
std::uint64_t fingerprint(const Table& table) {
  std::uint64_t hash = 0;
  const auto add = [&](float value) { hash = mix(hash ^ std::bit_cast<std::uint32_t>(value)); };
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::ranges::for_each(table.dense_row(i), add);
    add(table.label(i));
  }
  return hash;
}

class Generators : public testing::TestWithParam<std::string> {};

TEST_P(Generators, ProduceTheSameDataForTheSameSeed) {
  const std::string source = GetParam() + "n=40";
  EXPECT_EQ(fingerprint(load_text(source, 5).value()), fingerprint(load_text(source, 5).value()));
  EXPECT_NE(fingerprint(load_text(source, 5).value()), fingerprint(load_text(source, 6).value()));
}

TEST_P(Generators, FirstRowsDoNotDependOnTheNumberOfRows) {
  const Table few = load_text(GetParam() + "n=13").value();
  const Table many = load_text(GetParam() + "n=40").value();
  ASSERT_EQ(many.size(), 40U);
  for (std::size_t i = 0; i < few.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(few.dense_row(i), many.dense_row(i)));
    EXPECT_EQ(few.label(i), many.label(i));
  }
}

TEST_P(Generators, ShareNoRowBetweenTrainingAndTestData) {
  const Source source = Source::parse(GetParam() + "n=40").value();
  const TablePair pair = load_pair(source, source, 1).value();
  EXPECT_EQ(fingerprint(pair.test), fingerprint(load_test(source, 1, std::nullopt).value()));
  EXPECT_EQ(fingerprint(pair.train), fingerprint(load(source, 1).value()));
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t j = 0; j < 40; ++j)
      EXPECT_FALSE(std::ranges::equal(pair.train.dense_row(i), pair.test.dense_row(j)));
}

INSTANTIATE_TEST_SUITE_P(All, Generators,
                         testing::Values("digits:", "linear:d=3,",
                                         "ratings:users=3000,items=2000,"));

/// The expected fingerprints were computed once. They must not change: a source and a seed always
/// mean the same data.
TEST(Generators, ProduceTheSameNumbersOnEveryMachine) {
  EXPECT_EQ(fingerprint(load_text("digits:n=100").value()), 3570033567554318347U);
  EXPECT_EQ(fingerprint(load_text("linear:d=10,n=100").value()), 4598318450584759155U);
  EXPECT_EQ(fingerprint(load_text("ratings:n=100").value()), 9138505111485358404U);
}

TEST(Digits, AreBalancedImages) {
  const Table table = load_text("digits").value();
  const Description d = describe(table);
  EXPECT_EQ(d.rows, 6000U);
  EXPECT_EQ(d.features, 784U);
  EXPECT_EQ(d.class_counts, std::vector<std::size_t>(10, 600));
  EXPECT_EQ(d.value_min, 0);
  EXPECT_EQ(d.value_max, 1);
  EXPECT_GT(d.value_mean, 0.08);
  EXPECT_LT(d.value_mean, 0.25);
  for (std::size_t i = 0; i < 100; i += 10) {
    std::set<float> seen;
    for (std::size_t j = i; j < i + 10; ++j) seen.insert(table.label(j));
    EXPECT_EQ(seen.size(), 10U);
  }
}

TEST(Digits, HaveTenClassesForAnyNumberOfRows) {
  EXPECT_EQ(load_text("digits:n=1").value().classes(), 10U);
}

/// Each image of one half of the data is predicted by the nearest of the classes' mean images over
/// the other half. At chance, 200 of 2000 predictions would be right.
TEST(Digits, AreLearnableButNotPerfectlyByMeanImages) {
  const Table table = load_text("digits:n=4000").value();
  std::vector<std::vector<double>> means(10, std::vector<double>(784, 0));
  for (std::size_t i = 0; i < 2000; ++i)
    for (std::size_t j = 0; j < 784; ++j)
      means[static_cast<std::size_t>(table.label(i))][j] +=
          static_cast<double>(table.dense_row(i)[j]) / 200;
  int right = 0;
  for (std::size_t i = 2000; i < 4000; ++i) {
    const auto distance = [&](const std::vector<double>& mean) {
      double sum = 0;
      for (std::size_t j = 0; j < 784; ++j)
        sum += std::pow(static_cast<double>(table.dense_row(i)[j]) - mean[j], 2);
      return sum;
    };
    const auto best = std::ranges::min_element(means, {}, distance) - means.begin();
    right += static_cast<float>(best) == table.label(i) ? 1 : 0;
  }
  EXPECT_GT(right, 1000);
  EXPECT_LT(right, 1900);
}

TEST(Linear, LabelsFollowTheTrueParametersWithNoise) {
  const Table table = load_text("linear:d=50,n=4000,noise=0.5").value();
  ASSERT_EQ(table.true_weights.size(), 50U);
  EXPECT_EQ(table.classes(), 0U);
  double error = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    double y = 0;
    for (std::size_t j = 0; j < 50; ++j)
      y += static_cast<double>(table.dense_row(i)[j]) * static_cast<double>(table.true_weights[j]);
    error += std::pow(y - static_cast<double>(table.label(i)), 2);
  }
  // The bound is five standard deviations of the mean square of 4000 normal values of variance
  // 0.25.
  EXPECT_NEAR(error / 4000, 0.25, 5 * 0.25 * std::sqrt(2.0 / 4000));
}

TEST(Linear, FeaturesAreStandardNormal) {
  const Table table = load_text("linear:d=100,n=1000").value();
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < table.size(); ++i)
    for (const float x : table.dense_row(i)) {
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
  EXPECT_NEAR(sum / 1e5, 0, 5 / std::sqrt(1e5));
  EXPECT_NEAR(squares / 1e5, 1, 5 * std::sqrt(2 / 1e5));
}

TEST(Linear, UsesTheSameTrueParametersForTestData) {
  const Source source = Source::parse("linear:d=5,n=10").value();
  const TablePair pair = load_pair(source, source, 3).value();
  EXPECT_EQ(pair.train.true_weights, pair.test.true_weights);
  EXPECT_EQ(pair.train.true_weights.size(), 5U);
}

TEST(Ratings, AreAMatrixOfLowRankAndUnitVariance) {
  const Table table = load_text("ratings:users=60,items=50,rank=1,n=40000,noise=0").value();
  const Description d = describe(table);
  EXPECT_EQ(d.features, 2U);
  EXPECT_EQ(table.classes(), 0U);
  std::vector<std::vector<double>> matrix(60, std::vector<double>(50, 0));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto row = table.dense_row(i);
    const auto user = static_cast<std::size_t>(row[0]);
    const auto item = static_cast<std::size_t>(row[1]);
    matrix.at(user).at(item) = static_cast<double>(table.label(i));
  }
  // A matrix has rank one if every 2 x 2 minor is zero.
  for (std::size_t u = 1; u < 60; ++u)
    for (std::size_t i = 1; i < 50; ++i)
      EXPECT_NEAR(matrix[0][0] * matrix[u][i], matrix[u][0] * matrix[0][i], 1e-4);
  double squares = 0;
  const Table wide = load_text("ratings:users=2000,items=2000,rank=8,n=40000,noise=0").value();
  for (std::size_t i = 0; i < wide.size(); ++i)
    squares += std::pow(static_cast<double>(wide.label(i)), 2);
  EXPECT_NEAR(squares / 40'000, 1, 0.05);
}

}  // namespace
}  // namespace starling::models
