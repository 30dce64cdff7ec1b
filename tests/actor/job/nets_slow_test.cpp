// Tests the accuracy of neural networks on real images, with four workers. docs/nets.md has the
// results.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "starling/models/data/split.hpp"
#include "test_paths.hpp"
#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

struct Setting {
  const char* mode;
  const char* barrier;
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.mode << ", " << setting.barrier;
}

class Nets : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
#ifdef STARLING_SANITIZED
    GTEST_SKIP() << "takes minutes under a sanitizer";
#endif
    const char* chosen = std::getenv("STARLING_DATA_DIR");
    const std::string folder = chosen != nullptr ? chosen : STARLING_DATA_DIR;
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no data sets at " << folder;
    mnist_ = load("idx:" + folder + "/mnist-10k-images-idx3-ubyte.gz," + folder +
                  "/mnist-10k-labels-idx1-ubyte.gz");
  }

  [[nodiscard]] const models::Table& mnist() const { return mnist_; }

  [[nodiscard]] static TrainOptions options(const char* optimizer, std::size_t batch,
                                            double epochs) {
    TrainOptions options;
    options.job.mode = core::parse_mode(GetParam().mode).value();
    options.job.barrier = barrier::parse(GetParam().barrier).value();
    options.job.workers = 4;
    options.job.evaluate_train = false;
    options.optimizer = models::parse_optimizer(optimizer).value();
    options.batch = batch;
    options.epochs = epochs;
    return options;
  }

  [[nodiscard]] static double accuracy(const std::string& model, const models::Table& train,
                                       const models::Table& test, const TrainOptions& options) {
    const Outcome outcome = train_text(model, train, &test, options);
    EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
    return metric(outcome.last.test, "accuracy");
  }

 private:
  models::Table mnist_;
};

INSTANTIATE_TEST_SUITE_P(In, Nets,
                         testing::Values(Setting{"central", "bsp"},
                                         Setting{"peer", "pssp:s=4,beta=2"}),
                         [](const auto& setting) { return std::string{setting.param.mode}; });

TEST_P(Nets, LeNetLearnsMnistInFiveEpochs) {
  const auto rows = models::split_first(mnist().size(), 8000).value();
  const auto train = mnist().select(rows.train);
  const auto test = mnist().select(rows.test);
  auto training = options("adam:lr=0.002", 8, 5);
  training.schedule = models::parse_schedule("cosine:samples=40000").value();
  double sum = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    training.job.seed = seed;
    sum += accuracy("lenet5", train, test, training);
  }
  RecordProperty("accuracy", std::to_string(sum / 3));
  EXPECT_GE(sum / 3, 0.97);
}

/// If the network fits all training images, batch normalisation and residual branches have the
/// right gradients, and the running statistics reach the evaluation.
TEST_P(Nets, ResNetFits512ImagesPerfectly) {
  std::vector<std::uint32_t> rows(512);
  std::iota(rows.begin(), rows.end(), 0U);
  const auto images = mnist().select(rows);
  EXPECT_EQ(accuracy("resnet-small", images, images, options("adam:lr=0.003", 16, 30)), 1.0);
}

}  // namespace
}  // namespace starling::actor
