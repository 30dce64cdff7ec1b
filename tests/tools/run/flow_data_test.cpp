/// Data sources of a registry and saved models in map-reduce programs.
#include "starling/tools/run/flow_data.hpp"

#include <gtest/gtest.h>

#include "starling/actor/flow/sample_table.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/train/train_options.hpp"
#include "starling/base/random.hpp"
#include "starling/models/data/load.hpp"
#include "starling/tools/registry/built_in.hpp"
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

}  // namespace
}  // namespace starling::program
