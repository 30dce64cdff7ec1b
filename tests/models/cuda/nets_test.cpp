// Nets on a device against the CPU: every layer, every loss, the named nets.
#include <thread>

#include "tests/models/cuda/device.hpp"

namespace starling::models::cuda {
namespace {

/// Sums of float32 in another order: relative to a parameter's whole gradient.
constexpr double rounding = 5e-5;

struct Case {
  std::string name;
  std::string net;
  std::size_t features;
  std::size_t classes = 10;
  std::size_t rows = 37;
  /// Whether rounding may tip a unit or the choice of a maximum, and so move a gradient by far
  /// more: among thousands of them one stands on the edge.
  bool kinks = false;
};

void PrintTo(const Case& given, std::ostream* out) { *out << given.net; }

Case images(std::string name, const std::string& layers) {
  return {std::move(name), "net:input=9x8x3,layers=" + layers + "; flatten; dense 10", 216};
}
Case flat(std::string name, const std::string& layers) {
  return {std::move(name), "net:layers=dense 24; " + layers + "; dense 10", 30};
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"Dense", "net:layers=dense 50; tanh; dense 10", 30},
      {"DenseWithoutBias", "net:layers=dense 50 bias=0; tanh; dense 10 bias=0", 30},
      images("Conv", "conv2d 5 kernel=3"),
      images("ConvOfManyChannels", "conv2d 32 kernel=3 padding=1; relu; conv2d 64 kernel=3"),
      images("ConvPaddedStrided", "conv2d 4 kernel=3 padding=1 stride=2 bias=0; tanh"),
      images("ConvPaddedMore", "conv2d 3 kernel=2; tanh; conv2d 2 kernel=3 padding=2; tanh"),
      images("ConvOfOnePixel", "tanh; conv2d 4 kernel=1 stride=2"),
      images("ConvOfLargeKernel", "conv2d 4 kernel=5 padding=2"),
      images("MaxPool", "conv2d 3 kernel=1; max-pool 2"),
      images("MaxPoolOverlapping", "conv2d 3 kernel=1; max-pool 3 stride=2 padding=1"),
      images("AvgPool", "conv2d 3 kernel=1; avg-pool 2"),
      images("AvgPoolOverlapping", "conv2d 3 kernel=1; avg-pool 3 stride=1 padding=2"),
      {"GlobalAvgPool", "net:input=9x8x3,layers=conv2d 4 kernel=2; tanh; global-avg-pool; dense 10",
       216},
      images("BatchNormOfImages", "conv2d 3 kernel=2; batch-norm; tanh"),
      flat("BatchNormOfRows", "batch-norm momentum=0.3 epsilon=0.01; tanh"),
      flat("DropoutOfNothing", "tanh; dropout 0"),
      flat("Relu", "relu"),
      flat("Gelu", "gelu"),
      {"TanhLast", "net:layers=dense 10; tanh", 30},
      {"FlattenFirst", "net:input=9x8x3,layers=flatten; dense 10", 216},
      images("ResidualIdentity", "conv2d 3 kernel=2; tanh; residual(conv2d 3 kernel=3 padding=1)"),
      images("ResidualOverTheInput", "residual(conv2d 3 kernel=1; tanh); tanh"),
      images("ResidualProjected",
             "conv2d 3 kernel=1; batch-norm; tanh; residual(conv2d 4 kernel=3 padding=1 stride=2; "
             "batch-norm; tanh; conv2d 4 kernel=1 | conv2d 4 kernel=1 stride=2; batch-norm); tanh"),
      flat("ResidualNested", "tanh; residual(dense 24; residual(tanh | dense 24; gelu | ); tanh)"),
      flat("ResidualOfActivations", "residual(tanh | gelu | )"),
      flat("ResidualOfItself", "residual( )"),
      {"ManyClasses", "net:layers=dense 100", 30, 100},
      {"Squared", "net:layers=dense 4; tanh; dense 1", 7, 0},
      {"Contrastive", "net:layers=dense 4; tanh; dense 3,loss=contrastive margin=2", 14, 2},
      {"ContrastiveImages",
       "net:input=3x3x1,layers=conv2d 2 kernel=2; batch-norm; tanh; flatten,loss=contrastive", 18,
       2},
      {"OneRow", "net:input=9x8x3,layers=conv2d 3 kernel=3; batch-norm; flatten; dense 10", 216, 10,
       1},
      {"GhostBatches", "net:layers=dense 6; batch-norm; tanh; dense 10", 30, 10, 600},
      {"Pieces", "net:layers=dense 6; batch-norm; tanh; dense 10", 30, 10, 9000},
  };
  for (const std::string name : {"lenet5", "psp-cnn"})
    all.push_back({name == "lenet5" ? "Lenet5" : "PspCnn", without_dropout(name, "28x28x1"), 784});
  for (const std::string name : {"vgg-small", "resnet-small"}) {
    const std::string title = name == "vgg-small" ? "VggSmall" : "ResnetSmall";
    const std::string net = without_dropout(name, "32x32x3");
    all.push_back({.name = title, .net = net, .features = 3072, .kinks = true});
    all.push_back({title + "Smooth", without_kinks(net), 3072});
  }
  return all;
}

class Nets : public testing::TestWithParam<Case> {};

TEST_P(Nets, ComputeWhatTheCpuComputes) {
  STARLING_NEEDS_DEVICE();
  const auto [name, text, features, classes, rows, kinks] = GetParam();
  const Table data = dense_table(rows, features, classes);
  const Net<float> net = net_of(text, data);
  auto engine = make_engine(net, 0, rows);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> placed = net.on(*engine);
  const auto w = initial(net);
  const auto batch = all_rows(data);
  const Gradient wanted = gradient_of(net, w, data, batch);
  // As it is, recorded, replayed.
  std::vector<float> first;
  for (int round = 0; round < 3; ++round) {
    const Gradient seen = gradient_of(placed, w, data, batch);
    EXPECT_NEAR(seen.loss, wanted.loss, 1e-5 * std::max(1.0, wanted.loss));
    if (!kinks)
      expect_same_gradient(net, seen.g, wanted.g,
                           rounding * (name == "ResnetSmallSmooth" ? 10 : 1));
    if (round == 0) first = seen.g;
    EXPECT_EQ(seen.g, first) << "round " << round << " differs";
  }

  Arena arena;
  Random random{1};
  Pass pass{random, arena, false};
  const Metrics own = net.evaluate(w, data, batch, pass);
  const Metrics seen = placed.evaluate(w, data, batch, pass);
  ASSERT_EQ(own.size(), seen.size());
  EXPECT_NEAR(seen[0].value, own[0].value, 1e-5 * std::max(1.0, own[0].value));
  // A score on the edge may fall to either side.
  EXPECT_NEAR(seen[1].value, own[1].value, 2.0 / static_cast<double>(rows) + 1e-5);
  std::vector<float> scores(rows * net.outputs());
  std::vector<float> wanted_scores(scores.size());
  net.scores(w, data, batch, pass, wanted_scores);
  placed.scores(w, data, batch, pass, scores);
  EXPECT_LT(relative_error(scores, wanted_scores), rounding);
}

INSTANTIATE_TEST_SUITE_P(Layers, Nets, testing::ValuesIn(cases()),
                         [](const auto& given) { return given.param.name; });

TEST(Embeddings, AreTheCpus) {
  STARLING_NEEDS_DEVICE();
  Random random{3};
  Table::Dense x;
  for (std::size_t i = 0; i < 2400; ++i) x.values.push_back(static_cast<float>(random.below(40)));
  const Table data{8, 3, std::move(x), draw_labels(300, 3, random)};
  const Net<float> net = net_of("net:layers=embedding 50 width=6; flatten; dense 3", data);
  auto engine = make_engine(net, 0, 300);
  ASSERT_TRUE(engine) << engine.error().message;
  const auto w = initial(net);
  const auto batch = all_rows(data);
  expect_same_gradient(net, gradient_of(net.on(*engine), w, data, batch).g,
                       gradient_of(net, w, data, batch).g, rounding);
}

/// The loss of one seed is a smooth function of the parameters: its slope along the gradient is the
/// gradient's square.
TEST(Draws, AreTheSameInBothPassesAndOthersWithEverySeed) {
  STARLING_NEEDS_DEVICE();
  for (const std::string layers :
       {"conv2d 4 kernel=3; tanh; random-shift 2; random-flip; flatten; dropout 0.4; dense 10",
        "random-flip; conv2d 4 kernel=3; dropout 0.5; tanh; flatten; dense 10"}) {
    SCOPED_TRACE(layers);
    const Table data = dense_table(64, 216, 10);
    const Net<float> net = net_of("net:input=9x8x3,layers=" + layers, data);
    auto engine = make_engine(net, 0, 64);
    ASSERT_TRUE(engine) << engine.error().message;
    const Net<float> placed = net.on(*engine);
    const auto w = initial(net);
    const auto batch = all_rows(data);
    const Gradient here = gradient_of(placed, w, data, batch, 7);
    EXPECT_NE(here.g, gradient_of(placed, w, data, batch, 8).g);
    double squares = 0;
    for (const float g : here.g) squares += static_cast<double>(g) * static_cast<double>(g);
    const double step = 0.02 / std::sqrt(squares);
    const auto loss_at = [&](double by) {
      std::vector<float> moved = w;
      for (std::size_t i = 0; i < w.size(); ++i)
        moved[i] += static_cast<float>(by * static_cast<double>(here.g[i]));
      return gradient_of(placed, moved, data, batch, 7).loss;
    };
    EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), squares, 0.02 * squares);
  }
}

TEST(Workers, ShareADeviceWithoutSeeingEachOther) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(256, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 64);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> placed = net.on(*engine);
  const auto rows = all_rows(data);
  const auto batch = [&](std::size_t worker) { return Batch{rows}.subspan(worker * 64, 64); };
  std::vector<Gradient> wanted(4);
  for (std::size_t worker = 0; worker < 4; ++worker)
    wanted[worker] = gradient_of(placed, initial(net, worker), data, batch(worker));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < 4; ++worker)
    threads.emplace_back([&, worker] {
      for (int round = 0; round < 20; ++round)
        wrong[worker] +=
            gradient_of(placed, initial(net, worker), data, batch(worker)).g != wanted[worker].g;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Precisions, Tf32IsNearAndOnlyWhereItIsAskedFor) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(64, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  const auto w = initial(net);
  const auto batch = all_rows(data);
  const Gradient wanted = gradient_of(net, w, data, batch);
  auto engine = make_engine(net, 0, 64, Precision::tf32);
  ASSERT_TRUE(engine) << engine.error().message;
  const Gradient seen = gradient_of(net.on(*engine), w, data, batch);
  expect_same_gradient(net, seen.g, wanted.g, 2e-2);
  auto exact = make_engine(net, 0, 64);
  ASSERT_TRUE(exact) << exact.error().message;
  // Else nothing was rounded, and nobody would see whether the option does anything.
  EXPECT_GT(relative_error(seen.g, gradient_of(net.on(*exact), w, data, batch).g), 1e-6);
}

TEST(Batches, OfManySizesComeAndGo) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(300, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 10);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> placed = net.on(*engine);
  const auto w = initial(net);
  const auto rows = all_rows(data);
  for (const std::size_t size : {10U, 300U, 10U, 7U, 10U, 10U, 300U, 300U, 300U, 1U})
    expect_same_gradient(net, gradient_of(placed, w, data, Batch{rows}.first(size)).g,
                         gradient_of(net, w, data, Batch{rows}.first(size)).g, rounding);
}

TEST(Batches, AreEvaluatedInPieces) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(600, 784, 10);
  const Net<float> net = net_of("lenet5", data);
  auto engine = make_engine(net, 0, 10);
  ASSERT_TRUE(engine) << engine.error().message;
  const Net<float> placed = net.on(*engine);
  const auto w = initial(net);
  const auto batch = all_rows(data);
  Arena arena;
  Random random{1};
  Pass pass{random, arena, false};
  EXPECT_NEAR(placed.evaluate(w, data, batch, pass)[0].value,
              net.evaluate(w, data, batch, pass)[0].value, 1e-5);
  std::vector<float> scores(600 * net.outputs());
  std::vector<float> wanted(scores.size());
  placed.scores(w, data, batch, pass, scores);
  net.scores(w, data, batch, pass, wanted);
  EXPECT_LT(relative_error(scores, wanted), rounding);
}

TEST(Batches, ThatNeedTooMuchMemoryAreRefusedWithWhatToDo) {
  STARLING_NEEDS_DEVICE();
  const Table data = dense_table(2, 65536, 10);
  // Each layer makes 4 GiB of 256 rows.
  std::string layers;
  for (int i = 0; i < 60; ++i) layers += "conv2d 64 kernel=1; ";
  const Net<float> net =
      net_of("net:input=256x256x1,layers=" + layers + "global-avg-pool; dense 10", data);
  const auto engine = make_engine(net, 0, 256);
  if (engine) GTEST_SKIP() << "the device has room for it";
  EXPECT_NE(engine.error().message.find("cuda:0: "), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("--batch"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace starling::models::cuda
