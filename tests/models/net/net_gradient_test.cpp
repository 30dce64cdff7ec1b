// Compares the gradient of every layer and loss with central finite differences, in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "starling/models/net/net.hpp"
#include "tests/models/model_data.hpp"
#include "tests/models/net/cases.hpp"

namespace starling::models {
namespace {

constexpr std::size_t rows = 11;

std::vector<NetCase> cases() {
  const NetSizes sizes{.image = {6, 5, 2}, .features = 7, .width = 6, .classes = 3};
  auto all = net_cases(sizes);
  all.push_back(sizes.between_dense("DropoutAfterTanh", "tanh; dropout 0.4"));
  all.push_back(sizes.between_dense("DropoutAfterDense", "dropout 0.4"));
  all.push_back(sizes.between_image_and_dense("RandomFlip", "conv2d 2 kernel=2; random-flip"));
  all.push_back(sizes.between_image_and_dense("RandomShift", "conv2d 2 kernel=2; random-shift 2"));
  return all;
}

class Nets : public testing::TestWithParam<NetCase> {
 protected:
  Nets() {
    Random random{5};
    for (double& value : w) value = 0.4 * random.normal();
    // Variances are never below zero.
    std::size_t start = 0;
    for (const Parameter& p : model.parameters()) {
      if (p.name.ends_with("variance"))
        for (std::size_t i = 0; i < p.size(); ++i) w[start + i] = 0.5 + std::abs(w[start + i]);
      start += p.size();
    }
  }

  /// Returns the loss of all rows and replaces g by its gradient. Each call draws the same random
  /// numbers.
  double loss(std::vector<double>& g) {
    arena.reset();
    Random random{1};
    ComputeContext context{random, arena};
    g.assign(w.size(), 0);
    return model.gradient(w, data, all_rows(data), g, context);
  }

  /// Returns a flag for each element of w: true if it belongs to a trained parameter.
  [[nodiscard]] std::vector<bool> trained_elements() const {
    std::vector<bool> flags;
    for (const Parameter& p : model.parameters()) flags.insert(flags.end(), p.size(), p.trained);
    return flags;
  }

  Table data = dense_table(rows, GetParam().features, GetParam().classes);
  Net<double> model = Net<double>::parse(Spec::parse(GetParam().net).value(), data).value();
  std::vector<double> w = std::vector<double>(total_size(model.parameters()));
  Arena arena;
};

/// The rows are one micro-batch or, if they are repeated, several.
TEST_P(Nets, SaysWhichElementsOfItsGradientAreFinal) {
  for (const std::size_t copies : {1, 30}) {
    std::vector<std::uint32_t> batch;
    for (std::size_t i = 0; i < copies; ++i)
      for (const std::uint32_t row : all_rows(data)) batch.push_back(row);
    std::vector<double> g(w.size());
    std::vector<std::pair<std::size_t, std::vector<double>>> seen;
    const std::function<void(std::size_t)> on_final = [&](std::size_t first) {
      seen.emplace_back(
          first, std::vector<double>(g.begin() + static_cast<std::ptrdiff_t>(first), g.end()));
    };
    arena.reset();
    Random random{1};
    ComputeContext context{.random = random, .arena = arena, .on_final = &on_final};
    model.gradient(w, data, batch, g, context);
    std::size_t last = w.size();
    for (const auto& [first, elements] : seen) {
      EXPECT_LT(first, last) << "fewer elements than before";
      last = first;
      EXPECT_TRUE(std::equal(elements.begin(), elements.end(),
                             g.begin() + static_cast<std::ptrdiff_t>(first)));
    }
    EXPECT_EQ(last, 0U) << "in the end all of them";
    std::set<std::string> layers;
    for (const Parameter& p : model.parameters())
      layers.insert(p.name.substr(0, p.name.rfind('.')));
    EXPECT_EQ(seen.size(), layers.size()) << "once for each layer with parameters";
  }
}

TEST_P(Nets, GradientEqualsFiniteDifferences) {
  std::vector<double> g, ignored;
  loss(g);
  const auto is_trained = trained_elements();
  constexpr double step = 1e-6;
  double largest = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (!is_trained[i]) continue;
    const double value = w[i];
    w[i] = value + step;
    const double above = loss(ignored);
    w[i] = value - step;
    const double below = loss(ignored);
    w[i] = value;
    EXPECT_NEAR(g[i], (above - below) / (2 * step), 1e-7) << "parameter " << i;
    largest = std::max(largest, std::abs(g[i]));
  }
  EXPECT_GT(largest, 1e-3) << "a gradient of zeros would test nothing";
}

TEST_P(Nets, FloatAgreesWithDouble) {
  auto float_model = Net<float>::parse(Spec::parse(GetParam().net).value(), data).value();
  std::vector<double> g;
  const double double_loss = loss(g);
  std::vector<float> v(w.begin(), w.end());
  std::vector<float> h(v.size());
  arena.reset();
  Random random{1};
  ComputeContext context{random, arena};
  EXPECT_NEAR(double_loss, float_model.gradient(v, data, all_rows(data), h, context), 1e-4);
  for (std::size_t i = 0; i < g.size(); ++i)
    EXPECT_NEAR(g[i], static_cast<double>(h[i]), 1e-4 + 1e-4 * std::abs(g[i])) << i;
}

TEST_P(Nets, PredictionsAgreeWithTheMetric) {
  arena.reset();
  Random random{1};
  ComputeContext context{random, arena, false};
  const auto batch = all_rows(data);
  std::vector<float> out(batch.size());
  model.predict(w, data, batch, context, out);
  const auto metrics = model.evaluate(w, data, batch, context);
  double sum = 0;
  for (const std::uint32_t row : batch) {
    const float error = out[row] - data.label(row);
    sum += static_cast<double>(data.classes() > 0 ? (error == 0 ? 1 : 0) : error * error);
  }
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[1].name, data.classes() > 0 ? "accuracy" : "mse");
  EXPECT_NEAR(metrics[1].value, sum / rows, 1e-6);
}

TEST_P(Nets, ParseThePrintedNet) {
  const std::string text = model.print();
  const Table shape{data.features(), data.classes(), Table::Dense{}, {}};
  const auto again = Net<double>::parse(Spec::parse(text).value(), shape);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->description(), model.description());
  EXPECT_EQ(again->print(), text);
}

TEST_P(Nets, AcceptEmptyBatches) {
  Random random{1};
  ComputeContext context{random, arena};
  std::vector<double> g(w.size());
  EXPECT_EQ(model.gradient(w, data, {}, g, context), 0);
  EXPECT_EQ(g, std::vector<double>(g.size(), 0));
  EXPECT_EQ(model.evaluate(w, data, {}, context)[0].value, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Nets, testing::ValuesIn(cases()),
                         [](const auto& given) { return given.param.name; });

/// An embedding reads ids; the nets above read real features, so they cannot have one.
TEST(EmbeddingGradient, EqualsFiniteDifferencesAndTouchesOnlyTheRowsOfItsIds) {
  const Table data{3, 2, Table::Dense{{0, 4, 2, 4, 4, 1}}, {1, 0}};
  const auto spec = Spec::parse("net:layers=embedding 7 width=2; tanh; flatten; dense 2").value();
  const auto model = Net<double>::parse(spec, data).value();
  std::vector<double> w(total_size(model.parameters()));
  Random start{3};
  model.initialise(w, start);
  Arena arena;
  const auto loss = [&](std::vector<double>& g) {
    arena.reset();
    Random random{1};
    ComputeContext context{random, arena};
    g.assign(w.size(), 0);
    return model.gradient(w, data, all_rows(data), g, context);
  };
  std::vector<double> g, ignored;
  loss(g);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double value = w[i];
    w[i] = value + 1e-6;
    const double above = loss(ignored);
    w[i] = value - 1e-6;
    const double below = loss(ignored);
    w[i] = value;
    EXPECT_NEAR(g[i], (above - below) / 2e-6, 1e-7) << i;
  }
  const auto touched = model.touched(data, all_rows(data));
  ASSERT_EQ(touched.size(), 1U);
  EXPECT_EQ(touched[0].rows, (std::vector<std::uint32_t>{0, 1, 2, 4}));
  EXPECT_NE(g[2], 0);
  EXPECT_EQ(g[6], 0) << "no row contains id 3";
  const Table with_id_7{3, 2, Table::Dense{{0, 7, 2}}, {1}};
  EXPECT_EQ(model.accepts(with_id_7).error().message,
            "layer1.embedding: row 1 of the data holds 7, which is no id from 0 to 6");
}

TEST(BatchNormStatistics, AreChangedByTheGradientAndUsedInEvaluation) {
  const Table data{1, 0, Table::Dense{{1, 2, 6}}, {0, 0, 0}};
  const auto spec = Spec::parse("net:layers=batch-norm momentum=0.5 epsilon=0.000001").value();
  const auto model = Net<double>::parse(spec, data).value();
  const auto parameters = model.parameters();
  ASSERT_EQ(parameters.size(), 4U);
  EXPECT_TRUE(parameters[0].trained);
  EXPECT_EQ(parameters[2].name, "layer1.batch-norm.mean");
  EXPECT_FALSE(parameters[2].trained);
  EXPECT_FALSE(parameters[3].trained);
  std::vector<double> w(4), g(4);
  Random random{1};
  model.initialise(w, random);
  EXPECT_EQ(w, (std::vector<double>{1, 0, 0, 1}));
  Arena arena;
  ComputeContext context{random, arena};
  model.gradient(w, data, all_rows(data), g, context);
  EXPECT_NEAR(g[2], 0.5 * 3, 1e-12);
  EXPECT_NEAR(g[3], 0.5 * (7 - 1), 1e-9) << "the unbiased variance of 1, 2, 6 is 7";
  const std::vector<double> learned{2, 1, 3, 4};
  std::vector<double> out(3);
  ComputeContext evaluation{random, arena, false};
  model.scores(learned, data, all_rows(data), evaluation, out);
  EXPECT_NEAR(out[0], 2 * (1 - 3) / 2.0 + 1, 1e-6);
  EXPECT_NEAR(out[2], 2 * (6 - 3) / 2.0 + 1, 1e-6);
}

TEST(BatchNormStatistics, NeedTwoSamplesInEachMicroBatch) {
  const Table data = dense_table(8, 3, 0);
  const auto net = [&](const char* text) {
    return Net<double>::parse(Spec::parse(text).value(), data).value();
  };
  const auto norm = net("net:layers=batch-norm; dense 1");
  for (const std::size_t samples : {2, 256, 258, 514}) EXPECT_TRUE(norm.accepts_batch(samples));
  EXPECT_FALSE(norm.accepts_batch(1));
  EXPECT_EQ(norm.accepts_batch(257).error().message,
            "layer1.batch-norm: 257 samples are computed 256 at a time, and the last one alone has "
            "no variance; valid: 256");
  EXPECT_TRUE(net("net:layers=dense 1").accepts_batch(257));
}

/// A float does not change any more when terms below its last bit are added to it.
TEST(BatchNormStatistics, AreExactOverMillionsOfPixels) {
  constexpr std::size_t side = 4096;
  constexpr std::size_t images = 2;
  // Half of the pixels are 0, the others 2.
  std::vector<float> pixels(images * side * side);
  for (std::size_t i = 0; i < pixels.size(); i += 2) pixels[i] = 2;
  const Table data{side * side, 0, Table::Dense{std::move(pixels)}, std::vector<float>(images)};
  const auto spec =
      Spec::parse("net:input=4096x4096x1,layers=batch-norm momentum=1; global-avg-pool; dense 1")
          .value();
  const auto model = Net<float>::parse(spec, data).value();
  std::vector<float> w(total_size(model.parameters())), g(w.size());
  Random random{1};
  model.initialise(w, random);
  Arena arena;
  ComputeContext context{random, arena};
  model.gradient(w, data, all_rows(data), g, context);
  EXPECT_NEAR(w[2] + g[2], 1, 1e-6) << "the mean";
  EXPECT_NEAR(w[3] + g[3], 1, 1e-6) << "the variance";
}

TEST(GlobalAvgPool, IsExactOverMillionsOfPixels) {
  constexpr std::size_t side = 4096;
  const Table data{side * side, 0, Table::Dense{std::vector<float>(side * side, 0.1F)}, {0}};
  const auto spec = Spec::parse("net:input=4096x4096x1,layers=global-avg-pool").value();
  const auto model = Net<float>::parse(spec, data).value();
  Random random{1};
  Arena arena;
  ComputeContext context{.random = random, .arena = arena, .training = false};
  float mean = 0;
  model.predict({}, data, all_rows(data), context, {&mean, 1});
  EXPECT_NEAR(mean, 0.1F, 1e-5F);
}

/// As in the last batch of an epoch, if the number of samples is not a multiple of the batch.
TEST(BatchNormStatistics, AreNotChangedByABatchOfOneSample) {
  const Table data{1, 0, Table::Dense{{6}}, {0}};
  const auto model = Net<double>::parse(Spec::parse("net:layers=batch-norm").value(), data).value();
  std::vector<double> w(4), g(4);
  Random random{1};
  model.initialise(w, random);
  Arena arena;
  ComputeContext context{random, arena};
  model.gradient(w, data, all_rows(data), g, context);
  EXPECT_EQ(g[2], 0);
  EXPECT_EQ(g[3], 0);
}

TEST(BatchNormStatistics, AreMeansOverTheMicroBatchesOfALargeBatch) {
  const Table data = dense_table(600, 3, 0);
  const auto model =
      Net<double>::parse(Spec::parse("net:layers=batch-norm; dense 1").value(), data).value();
  std::vector<double> w(total_size(model.parameters()));
  std::vector<double> g(w.size());
  Random random{1};
  model.initialise(w, random);
  Arena arena;
  ComputeContext context{random, arena};
  model.gradient(w, data, all_rows(data), g, context);
  double mean = 0;
  for (std::size_t i = 0; i < 600; ++i) mean += static_cast<double>(data.dense_row(i)[0]) / 600;
  EXPECT_NEAR(g[6], 0.1 * mean, 1e-12);
}

TEST(Dropout, DropsAtItsRateAndRepeatsWithTheSameSeed) {
  const Table data{999, 999, Table::Dense{std::vector<float>(999, 1)}, {0}};
  const auto spec = Spec::parse("net:layers=dropout 0.25").value();
  const auto model = Net<double>::parse(spec, data).value();
  Arena arena;
  const auto outputs = [&](std::uint64_t seed, bool training) {
    arena.reset();
    Random random{seed};
    ComputeContext context{random, arena, training};
    std::vector<double> out(999);
    model.scores({}, data, all_rows(data), context, out);
    return out;
  };
  EXPECT_EQ(outputs(1, false), std::vector<double>(999, 1));
  EXPECT_EQ(outputs(1, true), outputs(1, true));
  EXPECT_NE(outputs(1, true), outputs(2, true));
  const auto dropped = outputs(3, true);
  const auto zeros = std::ranges::count(dropped, 0.0);
  EXPECT_EQ(std::ranges::count(dropped, 1 / 0.75), 999 - zeros);
  EXPECT_NEAR(static_cast<double>(zeros), 999 * 0.25, 5 * std::sqrt(999 * 0.25 * 0.75));
}

/// Returns how many of 9000 images have their bright pixel at each of 3x3 pixels after `layer`
/// moved it from pixel `from`.
std::vector<double> moved(const std::string& layer, std::size_t from, bool training = true) {
  constexpr std::size_t images = 9000;
  Table::Dense x{std::vector<float>(images * 9)};
  for (std::size_t i = 0; i < images; ++i) x.values[i * 9 + from] = 1;
  const Table data{9, 9, std::move(x), std::vector<float>(images)};
  const auto spec = Spec::parse("net:input=3x3x1,layers=" + layer + "; flatten").value();
  const auto model = Net<double>::parse(spec, data).value();
  Random random{5};
  Arena arena;
  ComputeContext context{random, arena, training};
  std::vector<double> out(images * 9);
  model.scores({}, data, all_rows(data), context, out);
  std::vector<double> counts(9);
  for (std::size_t i = 0; i < out.size(); ++i) counts[i % 9] += out[i];
  return counts;
}

TEST(Augmentation, MirrorsHalfOfTheImages) {
  const auto counts = moved("random-flip", 3);
  EXPECT_EQ(counts[3] + counts[5], 9000);
  EXPECT_NEAR(counts[5], 4500, 5 * std::sqrt(9000 / 4.0));
  EXPECT_EQ(moved("random-flip", 3, false)[3], 9000) << "an evaluation mirrors nothing";
}

TEST(Augmentation, DrawsEveryShiftEquallyOften) {
  double chi_square = 0;
  double sum = 0;
  for (const double count : moved("random-shift 1", 4)) {
    chi_square += (count - 1000) * (count - 1000) / 1000;
    sum += count;
  }
  // The bound is the 0.9999 quantile of the chi-square distribution with 8 degrees of freedom.
  EXPECT_LT(chi_square, 31.83);
  EXPECT_EQ(sum, 9000);
  EXPECT_EQ(moved("random-shift 1", 4, false)[4], 9000) << "an evaluation shifts nothing";
}

}  // namespace
}  // namespace starling::models
