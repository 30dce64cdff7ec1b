// Compares nets on a device with the CPU: every layer, every loss, the built-in nets.
#include <thread>

#include "tests/models/cuda/device.hpp"
#include "tests/models/net/cases.hpp"

namespace starling::models::cuda {
namespace {

/// The allowed error relative to the norm of a parameter's gradient. It covers the rounding of
/// float32 sums in another order.
constexpr double rounding = 5e-5;

struct NetOnDeviceCase : NetCase {
  std::size_t rows = 37;
  /// True if relu or max-pool have so many inputs that rounding is likely to change which of them
  /// are active or maximal. That changes the gradient by far more than rounding, so the test does
  /// not compare the gradient with the CPU's.
  bool has_kinks = false;
};

void PrintTo(const NetOnDeviceCase& given, std::ostream* out) { *out << given.net; }

std::vector<NetOnDeviceCase> cases() {
  const NetSizes sizes{.image = {9, 8, 3}, .features = 30, .width = 24, .classes = 10};
  std::vector<NetOnDeviceCase> all;
  for (NetCase& each : net_cases(sizes)) all.push_back({std::move(each)});
  all.push_back({sizes.between_image_and_dense(
      "ConvOfManyChannels", "conv2d 32 kernel=3 padding=1; relu; conv2d 64 kernel=3")});
  all.push_back(
      {sizes.between_image_and_dense("ConvOfLargeKernel", "conv2d 4 kernel=5 padding=2")});
  all.push_back({sizes.between_dense("DropoutOfRateZero", "tanh; dropout 0")});
  all.push_back({{"ManyClasses", "net:layers=dense 100", 30, 100}});
  all.push_back({sizes.between_image_and_dense("OneRow", "conv2d 3 kernel=3; batch-norm"), 1});
  all.push_back({sizes.row_net("GhostBatches", "dense 6; batch-norm; tanh; dense 10"), 600});
  all.push_back({sizes.row_net("MicroBatches", "dense 6; batch-norm; tanh; dense 10"), 9000});
  for (const std::string name : {"lenet5", "psp-cnn"})
    all.push_back(
        {{name == "lenet5" ? "Lenet5" : "PspCnn", without_dropout(name, "28x28x1"), 784, 10}});
  for (const std::string name : {"vgg-small", "resnet-small"}) {
    const std::string title = name == "vgg-small" ? "VggSmall" : "ResnetSmall";
    const std::string net = without_dropout(name, "32x32x3");
    all.push_back({{title, net, 3072, 10}, 37, true});
    all.push_back({{title + "Smooth", without_kinks(net), 3072, 10}});
  }
  return all;
}

/// Compares losses, metrics and scores.
void expect_same_evaluation(const Net<float>& on_device, const Net<float>& net,
                            const std::vector<float>& w, const Table& data) {
  const auto batch = all_rows(data);
  Arena arena;
  Random random{1};
  ComputeContext context{random, arena, false};
  const Metrics expected = net.evaluate(w, data, batch, context);
  const Metrics actual = on_device.evaluate(w, data, batch, context);
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_NEAR(actual[0].value, expected[0].value, 1e-5 * std::max(1.0, expected[0].value));
  // Rounding may change the prediction of a row whose scores are nearly equal.
  EXPECT_NEAR(actual[1].value, expected[1].value, 2.0 / static_cast<double>(batch.size()) + 1e-5);
  std::vector<float> scores(batch.size() * net.outputs());
  std::vector<float> expected_scores(scores.size());
  on_device.scores(w, data, batch, context, scores);
  net.scores(w, data, batch, context, expected_scores);
  EXPECT_LT(relative_error(scores, expected_scores), rounding);
}

class Nets : public testing::TestWithParam<NetOnDeviceCase> {};

TEST_P(Nets, EqualTheCpu) {
  STARLING_NEEDS_DEVICE();
  const NetOnDeviceCase& given = GetParam();
  const Table data = dense_table(given.rows, given.features, given.classes);
  const Net<float> net = net_of(given.net, data);
  auto engine = make_engine(net, 0, given.rows);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> on_device = net.with_engine(*engine);
  const auto w = initial_parameters(net);
  const auto batch = all_rows(data);
  const Gradient expected = gradient_of(net, w, data, batch);
  // The first call runs the kernels, the second records them as a graph, the third replays the
  // graph.
  std::vector<float> first;
  for (int round = 0; round < 3; ++round) {
    const Gradient actual = gradient_of(on_device, w, data, batch);
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5 * std::max(1.0, expected.loss));
    if (!given.has_kinks)
      expect_same_gradient(net, actual.g, expected.g,
                           rounding * (given.name == "ResnetSmallSmooth" ? 10 : 1));
    if (round == 0) first = actual.g;
    EXPECT_EQ(actual.g, first) << "call " << round << " differs from call 0";
  }
  expect_same_evaluation(on_device, net, w, data);
}

INSTANTIATE_TEST_SUITE_P(Layers, Nets, testing::ValuesIn(cases()),
                         [](const auto& given) { return given.param.name; });

TEST(Embeddings, EqualTheCpu) {
  STARLING_NEEDS_DEVICE();
  Random random{3};
  Table::Dense x;
  for (std::size_t i = 0; i < 2400; ++i) x.values.push_back(static_cast<float>(random.below(40)));
  const Table data{8, 3, std::move(x), draw_labels(300, 3, random)};
  const Net<float> net = net_of("net:layers=embedding 50 width=6; flatten; dense 3", data);
  auto engine = make_engine(net, 0, 300);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> on_device = net.with_engine(*engine);
  const auto rows = all_rows(data);
  // Each call uses other rows and other parameters, so that rows left over from an earlier call
  // would change the gradient.
  for (const std::size_t size : {300U, 3U, 40U, 40U, 40U, 300U}) {
    const auto w = initial_parameters(net, size);
    const Batch batch = Batch{rows}.last(size);
    expect_same_gradient(net, gradient_of(on_device, w, data, batch).g,
                         gradient_of(net, w, data, batch).g, rounding);
  }
  expect_same_evaluation(on_device, net, initial_parameters(net, 1), data);
}

/// With a fixed seed, the loss is a smooth function of the parameters. If both passes use the same
/// random numbers, its derivative along the gradient is the gradient's squared norm.
TEST(RandomLayers, UseTheSameNumbersInBothPassesAndOthersForAnotherSeed) {
  STARLING_NEEDS_DEVICE();
  for (const std::string layers :
       {"conv2d 4 kernel=3; tanh; random-shift 2; random-flip; flatten; dropout 0.4; dense 10",
        "random-flip; conv2d 4 kernel=3; dropout 0.5; tanh; flatten; dense 10"}) {
    SCOPED_TRACE(layers);
    const Table data = dense_table(64, 216, 10);
    const Net<float> net = net_of("net:input=9x8x3,layers=" + layers, data);
    auto engine = make_engine(net, 0, 64);
    ASSERT_TRUE(engine) << engine.error().message;
    const Net<float> on_device = net.with_engine(*engine);
    const auto w = initial_parameters(net);
    const auto batch = all_rows(data);
    const Gradient gradient = gradient_of(on_device, w, data, batch, 7);
    EXPECT_NE(gradient.g, gradient_of(on_device, w, data, batch, 8).g);
    double squares = 0;
    for (const float g : gradient.g) squares += static_cast<double>(g) * static_cast<double>(g);
    const double step = 0.02 / std::sqrt(squares);
    const auto loss_at = [&](double distance_moved) {
      std::vector<float> moved = w;
      for (std::size_t i = 0; i < w.size(); ++i)
        moved[i] += static_cast<float>(distance_moved * static_cast<double>(gradient.g[i]));
      return gradient_of(on_device, moved, data, batch, 7).loss;
    };
    EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), squares, 0.02 * squares);
  }
}

TEST(Workers, ShareADeviceIndependently) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(256, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 64);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> on_device = net.with_engine(*engine);
  const auto rows = all_rows(data);
  const auto batch = [&](std::size_t worker) { return Batch{rows}.subspan(worker * 64, 64); };
  std::vector<Gradient> expected(4);
  for (std::size_t worker = 0; worker < 4; ++worker)
    expected[worker] = gradient_of(on_device, initial_parameters(net, worker), data, batch(worker));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < 4; ++worker)
    threads.emplace_back([&, worker] {
      for (int round = 0; round < 20; ++round)
        wrong[worker] +=
            gradient_of(on_device, initial_parameters(net, worker), data, batch(worker)).g !=
            expected[worker].g;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Precisions, Tf32IsNearAndUsedOnlyOnRequest) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(64, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  const auto w = initial_parameters(net);
  const auto batch = all_rows(data);
  const Gradient expected = gradient_of(net, w, data, batch);
  auto engine = make_engine(net, 0, 64, Precision::tf32);
  ASSERT_TRUE(engine) << engine.error().message;
  const Gradient actual = gradient_of(net.with_engine(*engine), w, data, batch);
  expect_same_gradient(net, actual.g, expected.g, 2e-2);
  auto exact = make_engine(net, 0, 64);
  ASSERT_TRUE(exact) << exact.error().message;
  // If the results were equal, the option would have had no effect.
  EXPECT_GT(relative_error(actual.g, gradient_of(net.with_engine(*exact), w, data, batch).g), 1e-6);
}

TEST(Batches, MayChangeTheirSize) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(300, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 10);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> on_device = net.with_engine(*engine);
  const auto w = initial_parameters(net);
  const auto rows = all_rows(data);
  for (const std::size_t size : {10U, 300U, 10U, 7U, 10U, 10U, 300U, 300U, 300U, 1U})
    expect_same_gradient(net, gradient_of(on_device, w, data, Batch{rows}.first(size)).g,
                         gradient_of(net, w, data, Batch{rows}.first(size)).g, rounding);
}

TEST(Batches, AreEvaluatedInMicroBatches) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(600, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 10);
  ASSERT_TRUE(engine) << engine.error().message;
  expect_same_evaluation(net.with_engine(*engine), net, initial_parameters(net), data);
}

TEST(Batches, ThatNeedTooMuchMemoryAreRefusedWithARemedy) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(2, 65536, 10);
  // The output of each layer for 256 rows takes 4 GiB.
  std::string layers;
  for (int i = 0; i < 60; ++i) layers += "conv2d 64 kernel=1; ";
  const Net<float> net =
      net_of("net:input=256x256x1,layers=" + layers + "global-avg-pool; dense 10", data);
  const auto engine = make_engine(net, 0, 256);
  if (engine) GTEST_SKIP() << "the device has enough memory";
  EXPECT_NE(engine.error().message.find("cuda:0: "), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("--batch"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace starling::models::cuda
