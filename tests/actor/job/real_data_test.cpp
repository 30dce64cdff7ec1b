// Tests the accuracy of models on real data, in every mode, as the mean over three seeds.
// docs/benchmarks.md has the results.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

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

/// The options of a training, and the accuracy that it must reach.
struct Training {
  std::string model;
  std::string optimizer;
  std::string schedule;
  std::size_t batch;
  double epochs;
  double l2;
  double accuracy_min;
};

class RealData : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
#ifdef STARLING_SANITIZED
    GTEST_SKIP() << "takes minutes under a sanitizer";
#endif
    const char* chosen = std::getenv("STARLING_DATA_DIR");
    folder_ = chosen != nullptr ? chosen : STARLING_DATA_DIR;
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no data sets at " << folder_;
  }

  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] models::Source source(const std::string& text) const {
    return models::Source::parse(text).value();
  }

  /// Trains with three seeds, and expects the mean accuracy on the test data.
  static void expect_accuracy(const Training& training, const models::TablePair& data) {
    double sum = 0;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      TrainOptions options;
      options.job.mode = core::parse_mode(GetParam().mode).value();
      options.job.barrier = barrier::parse(GetParam().barrier).value();
      options.job.workers = 4;
      options.job.seed = seed;
      options.job.evaluate_train = false;
      options.optimizer = models::parse_optimizer(training.optimizer).value();
      options.schedule = models::parse_schedule(training.schedule).value();
      options.batch = training.batch;
      options.epochs = training.epochs;
      options.l2 = training.l2;
      const Outcome outcome = train_text(training.model, data.train, &data.test, options);
      ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
      sum += metric(outcome.last.test, "accuracy");
    }
    EXPECT_GE(sum / 3, training.accuracy_min) << training.model;
    RecordProperty(training.model.substr(0, training.model.find(':')) + "_accuracy",
                   std::to_string(sum / 3));
  }

  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(In, RealData,
                         testing::Values(Setting{"central", "bsp"},
                                         Setting{"hybrid", "pssp:s=4,beta=2"},
                                         Setting{"peer", "pssp:s=4,beta=2"}),
                         [](const auto& setting) { return std::string{setting.param.mode}; });

TEST_P(RealData, Mnist) {
  const auto all = models::load(source("idx:" + file("mnist-10k-images-idx3-ubyte.gz") + "," +
                                       file("mnist-10k-labels-idx1-ubyte.gz")),
                                1)
                       .value();
  const auto rows = models::split_first(all.size(), 8000).value();
  expect_accuracy({"mlp:784-128-10", "sgd:lr=0.5", "constant", 8, 10, 0, 0.955},
                  {all.select(rows.train), all.select(rows.test)});
}

TEST_P(RealData, Optdigits) {
  const auto data = models::load_pair(source("csv:" + file("optdigits.tra")),
                                      source("csv:" + file("optdigits.tes")), 1);
  expect_accuracy({"softmax", "sgd:lr=0.005", "constant", 16, 20, 0, 0.94}, data.value());
  expect_accuracy(
      {"mlp:64-512-10", "adam:lr=0.005", "cosine:samples=152920", 16, 40, 0.0003, 0.965},
      data.value());
}

TEST_P(RealData, A9a) {
  const auto data = models::load_pair(source("libsvm:" + file("a9a") + ",features=123"),
                                      source("libsvm:" + file("a9a.t")), 1);
  expect_accuracy({"logistic", "sgd:lr=0.1", "constant", 32, 5, 0, 0.847}, data.value());
  expect_accuracy({"svm", "sgd:lr=0.05", "cosine:samples=325600", 32, 10, 0, 0.845}, data.value());
}

}  // namespace
}  // namespace starling::actor
