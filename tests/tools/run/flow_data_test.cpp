/// Data sources of a registry and saved models in map-reduce programs.
#include "starling/tools/run/flow_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string_view>

#include "starling/actor/flow/sample_table.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/base/input.hpp"
#include "starling/base/random.hpp"
#include "starling/models/data/load.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/flow.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {
namespace {

/// Returns a registry with a source of its own, which draws the samples of `linear:d=3`.
Registry registry_of_tests() {
  Registry registry;
  registry.data("half", "half[:n=50]", [](SpecReader& options, std::uint64_t seed) {
    const auto n = options.count("n", 50);
    const models::Source source{models::LinearSource{.d = 3, .n = n}};
    return models::load(source, seed);
  });
  return with_built_in(std::move(registry));
}

flow::MapReduce small_engine() { return flow::MapReduce::make({.threads = 2, .parts = 3}).value(); }

TEST(FlowSamples, ReadsSourcesOfTheRegistry) {
  const auto engine = small_engine();
  const auto registry = registry_of_tests();
  const auto own = flow_samples(engine, registry, "half:n=20", 4).value().collect().value();
  EXPECT_EQ(own, flow::samples(engine, "linear:d=3,n=20", 4).value().collect().value());
  EXPECT_EQ(own.size(), 20U);
  const auto digits = flow_samples(engine, registry, "digits:n=12").value();
  EXPECT_EQ(digits.count().value(), 12U);
  EXPECT_NE(flow_samples(engine, registry, "hlaf").error().message.find("half"), std::string::npos);
}

/// Counts the letters of each word, which is the label, for the words that have at least `least`.
struct Lengths {
  static constexpr std::string_view name = "lengths";
  static constexpr std::string_view summary = "lengths of words";
  std::uint64_t least = 0;

  static std::vector<FlowOption> flow_options() { return {{"least", "N", "the shortest [0]"}}; }
  static Lengths parse(SpecReader& options) { return {.least = options.count("least", 0)}; }
  [[nodiscard]] Result<flow::Set<flow::Sample>> run(FlowContext& context) const {
    const auto lines = context.text();
    if (!lines) return lines.error();
    const auto is_long = [least = least](const std::string& line) { return line.size() >= least; };
    const auto count = [](const std::string& line) {
      const auto vowels = std::ranges::count_if(
          line, [](char c) { return std::string_view{"aeiou"}.find(c) != std::string_view::npos; });
      return flow::Sample{{static_cast<float>(line.size()), static_cast<float>(vowels) + 0.1F},
                          vowels > 2 ? 2.0F : 1.0F};
    };
    return flow::Set<flow::Sample>{lines->filter(is_long).map(count)};
  }
};

class FlowAsDataSource : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("a.txt", "starling\nmurmuration\nwing\nbeaks\n");
    folder_.write("b.txt", "formation\nsky\n");
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] std::string error_of(const std::string& data) const {
    const auto loaded = load_source(registry_, data, 1);
    return loaded ? "none" : loaded.error().message;
  }

  Folder folder_;
  Registry registry_ = with_built_in(Registry{}.flow<Lengths>());
};

TEST_F(FlowAsDataSource, HasTheTableOfItsSamples) {
  const std::string source = "lengths:" + path("a.txt") + "," + path("b.txt") + ",least=4";
  const auto data = load_source(registry_, source, 1).value();
  const models::Table& table = *data.table();
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table.classes(), 2U);
  EXPECT_EQ(table.dense_row(1)[0], 11.0F);
  EXPECT_EQ(table.dense_row(4)[1], 4.1F);
  EXPECT_EQ(table.label(1), 1.0F);
  EXPECT_EQ(table.labelling.original(1), 2.0F);
  EXPECT_EQ(files_in(registry_, source), (std::vector{path("a.txt"), path("b.txt")}));
  const models::Recipe recipe{.standardises = true};
  EXPECT_EQ(scale_of(registry_, {.data = source}, recipe, data), models::Scale::standard);
}

TEST_F(FlowAsDataSource, ReadsTestDataAsTheTrainingData) {
  const std::string all = "lengths:" + path("a.txt") + "," + path("b.txt");
  const DataRequest request{.data = all, .test = "lengths:" + path("b.txt") + ",least=4"};
  const auto data = load_data(registry_, request).value();
  ASSERT_EQ(data.test->size(), 1U);
  // One class of test data alone would be a real target.
  EXPECT_EQ(data.test->table()->classes(), 2U);
  EXPECT_EQ(data.test->table()->label(0), 1.0F);
}

TEST_F(FlowAsDataSource, RefusesWhatItCannotRead) {
  EXPECT_EQ(error_of("lengths"),
            "lengths: has no file to read; valid: NAME:FILE[,FILE...][,option=value...]");
  EXPECT_EQ(error_of("lengths:" + path("none.txt")), path("none.txt") + ": no such file");
  EXPECT_EQ(error_of("lengths:" + path("a.txt") + ",least=x"),
            "lengths: least=x must be a whole number >= 0");
  EXPECT_EQ(error_of("lengths:" + path("a.txt") + ",most=3"),
            "lengths: unknown option 'most'; valid: least");
  EXPECT_EQ(error_of("lengths:" + path("a.txt") + ",least=99"),
            "the set has no samples; valid: at least one");
}

TEST_F(FlowAsDataSource, PrintsItsSamplesAsLines) {
  EXPECT_EQ(flow::line_of(flow::Sample{{1.5F, 0.1F}, 2}), "1.5\t0.1\t2");
  EXPECT_EQ(flow::line_of(flow::SparseSample{{0, 7}, {1.5F, -2}, 1}), "1 1:1.5 8:-2");
}

TEST(LoadPredictor, PredictsAsTheModelThatWasSaved) {
  const Folder folder;
  std::string csv = "size,weight,kind\n";
  for (std::uint64_t i = 0; i < 300; ++i) {
    Random random = Random::stream(5, i);
    const bool is_big = random.below(2) == 1;
    csv += std::to_string(100 + 50 * random.normal() + (is_big ? 90 : 0)) + "," +
           std::to_string(random.normal()) + (is_big ? ",big\n" : ",small\n");
  }
  folder.write("sizes.csv", csv);
  const std::string source = "csv:" + (folder.path() / "sizes.csv").string();
  const auto registry = registry_of_tests();
  const DataRequest request{.data = source, .scale = models::Scale::standard};
  const auto data =
      scale_data(models::Scale::standard, load_data(registry, request).value()).value();
  const auto model = make_model(registry, "softmax", data.train).value();
  actor::TrainOptions options;
  options.job.workers = 4;
  options.epochs = 3;
  const auto outcome = model->train(data.train, nullptr, options).value();
  const Weights w = model->collect(options.job, outcome.model);
  const std::string path = (folder.path() / "model.safetensors").string();
  ASSERT_TRUE(save_model(path, notes_of(*model, request, data.train), *model, w));

  const auto engine = small_engine();
  const auto predictor = load_predictor(registry, path);
  ASSERT_TRUE(predictor) << predictor.error().message;
  EXPECT_EQ(predictor->labelling().names, (std::vector<std::string>{"big", "small"}));
  const auto all = load_source(registry, source, 1).value();
  const auto expected = model->predict(w, scale_like(*data.train.table(), all).value()).value();
  const auto found =
      flow::predict(flow_samples(engine, registry, source).value(), *predictor).collect().value();
  ASSERT_EQ(found.size(), expected.size());
  std::size_t right = 0;
  for (std::size_t row = 0; row < found.size(); ++row) {
    EXPECT_EQ(found[row].second, expected[row]);
    right += found[row].first.label == found[row].second ? 1U : 0U;
  }
  EXPECT_GT(right, 200U);
}

TEST(LoadPredictor, RefusesFilesThatAreNoModels) {
  const Folder folder;
  folder.write("text", "no model");
  const auto registry = registry_of_tests();
  for (const char* name : {"none", "text"}) {
    const auto path = (folder.path() / name).string();
    EXPECT_TRUE(load_predictor(registry, path).error().message.starts_with(path + ": "));
  }
}

/// Counts how often it is called, and stops the reader of the data at the first call.
struct Stopping {
  static constexpr std::string_view name = "stopping";
  static constexpr std::string_view summary = "stops its reader";
  static inline std::atomic<int> calls = 0;
  static inline std::stop_source stop;

  static std::vector<FlowOption> flow_options() { return {}; }
  static Stopping parse(SpecReader& /*options*/) { return {}; }
  [[nodiscard]] Result<flow::Set<flow::Sample>> run(FlowContext& context) const {
    const auto lines = context.text();
    if (!lines) return lines.error();
    return flow::Set<flow::Sample>{lines->map([](const std::string& /*line*/) {
      stop.request_stop();
      ++calls;
      return flow::Sample{{1}, 1};
    })};
  }
};

TEST_F(FlowAsDataSource, EndsIfItsReaderIsStopped) {
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += "line\n";
  folder_.write("lines.txt", lines);
  Registry registry;
  registry.flow<Stopping>();
  const ReadScope scope{{.stop = Stopping::stop.get_token()}};
  const auto data =
      load_source(with_built_in(std::move(registry)), "stopping:" + path("lines.txt"), 1);
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().message.find("reading was cancelled"), std::string::npos)
      << data.error().message;
  EXPECT_LT(Stopping::calls, 90'000);
}

}  // namespace
}  // namespace starling::program
