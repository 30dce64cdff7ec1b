// Checks every model against central finite differences and the requirements of the model concept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <string>

#include "starling/models/built_in/built_in_models.hpp"
#include "tests/models/model_data.hpp"

namespace starling::models {
namespace {

struct GradientCase {
  /// The text that parse_model() reads.
  std::string model;
  /// Returns the data that the model is built for and computed on.
  Table (*data)();
};

void PrintTo(const GradientCase& given, std::ostream* out) { *out << given.model; }

template <std::size_t Features, std::size_t Classes>
Table dense() {
  return dense_table(23, Features, Classes);
}
template <std::size_t Features, std::size_t Classes>
Table sparse() {
  return sparse_table(23, Features, Classes);
}
Table ratings() { return ratings_table(23, 5, 7); }

const std::vector<GradientCase> gradient_cases{
    {"linear", dense<7, 0>},
    {"linear:bias=0", dense<1, 0>},
    {"linear:bias=0", sparse<9, 0>},
    {"logistic", dense<70, 2>},
    {"logistic:bias=0", sparse<9, 2>},
    {"softmax", dense<7, 5>},
    {"softmax", dense<5, 2>},
    {"softmax:bias=0", sparse<9, 3>},
    {"svm", dense<7, 2>},
    {"svm", dense<7, 4>},
    {"svm", sparse<9, 2>},
    {"svm:bias=0", sparse<9, 3>},
    {"mf:rank=1", ratings},
    {"mf:rank=3", ratings},
    {"mlp:6-5-3", dense<6, 3>},
    {"mlp:6-3", dense<6, 3>},
    {"mlp:6-8-7-3,activation=tanh", dense<6, 3>},
    {"mlp:6-5-1", dense<6, 0>},
    {"mlp:6-1-1,activation=tanh", dense<6, 0>},
    {"mlp:9-5-4", sparse<9, 4>},
    {"mlp:9-1,activation=tanh", sparse<9, 0>},
    {"net:layers=dense 5; relu; dense 3", dense<6, 3>},
    {"net:input=3x2x1,layers=conv2d 2 kernel=2; tanh; flatten; dense 1", dense<6, 0>},
};

/// A model with its data and random parameters. Its functions call those of the model.
template <class T = double>
struct ModelUnderTest {
  explicit ModelUnderTest(const GradientCase& given)
      : data(given.data()), model(parse_model<T>(given.model, data).value()) {
    Random random{5};
    w.resize(total_size(parameters()));
    for (T& value : w) value = static_cast<T>(0.3 * random.normal());
  }

  std::vector<Parameter> parameters() const {
    return std::visit([](const auto& any) { return any.parameters(); }, model);
  }
  double gradient(Batch batch, std::vector<T>& g) {
    arena.reset();
    Random random{1};
    ComputeContext context{random, arena};
    g.assign(w.size(), T{0});
    return std::visit([&](const auto& any) { return any.gradient(w, data, batch, g, context); },
                      model);
  }
  Metrics evaluate(Batch batch) {
    arena.reset();
    Random random{1};
    ComputeContext context{random, arena, false};
    return std::visit([&](const auto& any) { return any.evaluate(w, data, batch, context); },
                      model);
  }
  std::vector<float> predict(Batch batch) {
    arena.reset();
    Random random{1};
    ComputeContext context{random, arena, false};
    std::vector<float> out(batch.size());
    std::visit([&](const auto& any) { any.predict(w, data, batch, context, out); }, model);
    return out;
  }
  std::vector<TouchedRows> touched(Batch batch) const {
    return std::visit([&](const auto& any) { return any.touched(data, batch); }, model);
  }

  Table data;
  AnyModel<T> model;
  std::vector<T> w;
  Arena arena;
};

class Models : public testing::TestWithParam<GradientCase> {};

/// Compares each element of the gradient with the central difference of the loss.
void expect_finite_differences(ModelUnderTest<>& tested, Batch batch) {
  std::vector<double> g;
  const double loss = tested.gradient(batch, g);
  EXPECT_NEAR(loss, tested.evaluate(batch)[0].value, 1e-12);
  constexpr double step = 1e-5;
  double largest = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double original = tested.w[i];
    tested.w[i] = original + step;
    const double above = tested.evaluate(batch)[0].value;
    tested.w[i] = original - step;
    const double below = tested.evaluate(batch)[0].value;
    tested.w[i] = original;
    EXPECT_NEAR(g[i], (above - below) / (2 * step), 1e-8) << "parameter " << i;
    largest = std::max(largest, std::abs(g[i]));
  }
  EXPECT_GT(largest, 1e-3) << "a gradient of zeros proves nothing";
}

TEST_P(Models, GradientAgreesWithFiniteDifferences) {
  ModelUnderTest tested{GetParam()};
  expect_finite_differences(tested, all_rows(tested.data));
}

TEST_P(Models, GradientAgreesForScatteredAndRepeatedRows) {
  ModelUnderTest tested{GetParam()};
  const std::vector<std::uint32_t> batch{4, 22, 4, 0, 9, 4, 17};
  expect_finite_differences(tested, batch);
}

TEST_P(Models, GradientAgreesForOneRow) {
  ModelUnderTest tested{GetParam()};
  const std::vector<std::uint32_t> batch{6};
  expect_finite_differences(tested, batch);
}

TEST_P(Models, RepeatedRowsCountForEachRepetition) {
  ModelUnderTest tested{GetParam()};
  std::vector<double> once, other, mixed;
  const double loss_once = tested.gradient(std::vector<std::uint32_t>{3}, once);
  const double loss_other = tested.gradient(std::vector<std::uint32_t>{8}, other);
  const double loss_mixed = tested.gradient(std::vector<std::uint32_t>{3, 8, 3}, mixed);
  EXPECT_NEAR(loss_mixed, (2 * loss_once + loss_other) / 3, 1e-12);
  for (std::size_t i = 0; i < mixed.size(); ++i)
    EXPECT_NEAR(mixed[i], (2 * once[i] + other[i]) / 3, 1e-12);
}

// A model computes a large batch in micro-batches; 690 rows are several.
TEST_P(Models, BatchesOfSeveralMicroBatchesGiveMeansOverAllRows) {
  ModelUnderTest tested{GetParam()};
  std::vector<std::uint32_t> batch;
  for (std::uint32_t i = 0; i < 23 * 30; ++i) batch.push_back(i % 23);
  std::vector<double> each_row_once, each_row_30_times;
  const double loss = tested.gradient(all_rows(tested.data), each_row_once);
  EXPECT_NEAR(tested.gradient(batch, each_row_30_times), loss, 1e-12);
  for (std::size_t i = 0; i < each_row_30_times.size(); ++i)
    EXPECT_NEAR(each_row_30_times[i], each_row_once[i], 1e-12);
  const auto small = tested.evaluate(all_rows(tested.data));
  const auto large = tested.evaluate(batch);
  for (std::size_t m = 0; m < small.size(); ++m) EXPECT_NEAR(small[m].value, large[m].value, 1e-12);
}

TEST_P(Models, FloatAgreesWithDouble) {
  ModelUnderTest<double> in_double{GetParam()};
  ModelUnderTest<float> in_float{GetParam()};
  std::vector<double> g;
  std::vector<float> h;
  const auto batch = all_rows(in_double.data);
  EXPECT_NEAR(in_double.gradient(batch, g), in_float.gradient(batch, h), 1e-4);
  for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], static_cast<double>(h[i]), 1e-4);
}

TEST_P(Models, PredictionsAgreeWithTheMetric) {
  ModelUnderTest tested{GetParam()};
  const auto batch = all_rows(tested.data);
  const auto predicted = tested.predict(batch);
  const auto metrics = tested.evaluate(batch);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].name, "loss");
  double sum = 0;
  for (const std::uint32_t row : batch) {
    const float label = tested.data.label(row);
    const auto error = static_cast<double>(predicted[row] - label);
    sum += tested.data.classes() > 0 ? (predicted[row] == label ? 1 : 0) : error * error;
  }
  EXPECT_EQ(metrics[1].name, tested.data.classes() > 0 ? "accuracy" : "mse");
  EXPECT_NEAR(metrics[1].value, sum / static_cast<double>(batch.size()), 1e-6);
}

TEST_P(Models, OnlyTouchedRowsAreReadOrWritten) {
  ModelUnderTest tested{GetParam()};
  const std::vector<std::uint32_t> batch{2, 11};
  const auto touched = tested.touched(batch);
  std::vector<double> g, again;
  const double loss = tested.gradient(batch, g);
  const auto parameters = tested.parameters();
  std::size_t start = 0;
  std::vector<bool> allowed(g.size(), true);
  for (std::size_t p = 0; p < parameters.size(); start += parameters[p].size(), ++p) {
    if (!parameters[p].row_sparse) continue;
    const auto rows = std::ranges::find(touched, p, &TouchedRows::parameter);
    ASSERT_NE(rows, touched.end()) << parameters[p].name;
    for (std::size_t i = 0; i < parameters[p].size(); ++i) {
      const auto row = static_cast<std::uint32_t>(i / parameters[p].row_size());
      allowed[start + i] = std::ranges::binary_search(rows->rows, row);
    }
  }
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (allowed[i]) continue;
    EXPECT_EQ(g[i], 0);
    tested.w[i] = std::numeric_limits<double>::quiet_NaN();
  }
  EXPECT_EQ(tested.gradient(batch, again), loss);
  EXPECT_EQ(again, g);
}

TEST_P(Models, EmptyBatchesGiveZeroGradientAndLoss) {
  ModelUnderTest tested{GetParam()};
  std::vector<double> g;
  EXPECT_EQ(tested.gradient({}, g), 0);
  EXPECT_EQ(g, std::vector<double>(g.size(), 0));
  EXPECT_EQ(tested.evaluate({})[0].value, 0);
}

TEST_P(Models, ExtremeParametersGiveFiniteGradients) {
  ModelUnderTest<float> tested{GetParam()};
  for (float& value : tested.w) value *= 1e4F;
  std::vector<float> g;
  EXPECT_TRUE(std::isfinite(tested.gradient(all_rows(tested.data), g)));
  for (const float derivative : g) ASSERT_TRUE(std::isfinite(derivative));
}

TEST_P(Models, StartAtZeroOnlyIfTheLossIsConvex) {
  ModelUnderTest tested{GetParam()};
  Random random{7};
  std::vector<double> w(tested.w.size(), -1);
  std::visit([&](const auto& any) { any.initialise(w, random); }, tested.model);
  // The first four alternatives are linear, logistic, softmax and svm.
  const bool is_convex = tested.model.index() < 4;
  const auto nonzeros = std::ranges::count_if(w, [](double value) { return value != 0; });
  EXPECT_EQ(is_convex, nonzeros == 0);
  EXPECT_EQ(std::ranges::count(w, -1.0), 0) << "a parameter was not initialised";
}

TEST_P(Models, GradientDescentLowersTheLoss) {
  ModelUnderTest tested{GetParam()};
  Random random{7};
  std::visit([&](const auto& any) { any.initialise(tested.w, random); }, tested.model);
  const auto batch = all_rows(tested.data);
  std::vector<double> g;
  const double first = tested.gradient(batch, g);
  for (int step = 0; step < 200; ++step) {
    tested.gradient(batch, g);
    for (std::size_t i = 0; i < g.size(); ++i) tested.w[i] -= 0.05 * g[i];
  }
  EXPECT_LT(tested.gradient(batch, g), 0.98 * first);
}

/// Finite differences do not show which function a model computes.
TEST(Perceptron, ComputesWhatANetOfTheSameLayersComputes) {
  for (const std::string activation : {"relu", "tanh"}) {
    ModelUnderTest<> mlp{{"mlp:6-5-3,activation=" + activation, dense<6, 3>}};
    ModelUnderTest<> net{{"net:layers=dense 5; " + activation + "; dense 3", dense<6, 3>}};
    ASSERT_EQ(mlp.w, net.w);
    std::vector<double> g, h;
    const auto batch = all_rows(mlp.data);
    EXPECT_NEAR(mlp.gradient(batch, g), net.gradient(batch, h), 1e-12) << activation;
    for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], h[i], 1e-12) << i;
  }
}

TEST(Factorization, AddsMeanBiasesAndTheProductOfTheFactors) {
  ModelUnderTest<> tested{{"mf:rank=2,users=2,items=2", [] {
                             return Table{2, 0, Table::Dense{{1, 0}}, {0}};
                           }}};
  // The factors of two users and of two items, the biases of both, the mean.
  tested.w = {1, 2, 3, 4, 5, 6, 7, 8, 0.25, 0.5, 2, 4, 100};
  EXPECT_EQ(tested.predict(all_rows(tested.data))[0], 100 + 0.5 + 2 + 3 * 5 + 4 * 6);
}

std::string name_of(const testing::TestParamInfo<GradientCase>& given) {
  std::string name = std::to_string(given.index) + "_" + given.param.model;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(gradient_cases), name_of);

}  // namespace
}  // namespace starling::models
