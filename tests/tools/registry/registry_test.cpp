#include "starling/tools/registry/registry.hpp"

#include <gtest/gtest.h>

#include "starling/base/mapped_file.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "starling/tools/command_line/main.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/default_model.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {
namespace {

/// Data of a user's type that cannot be divided, because it has no `select`.
struct Indivisible {
  int n = 3;
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(n); }
};

/// Two samples with the labels `first` and `first` + 1.
struct Labelled {
  double first = 0;
  [[nodiscard]] static std::size_t size() { return 2; }
  [[nodiscard]] double label(std::size_t i) const { return first + static_cast<double>(i); }
};

/// A model with one parameter, which stays 1, and the loss `loss`.
struct ConstantModel {
  using Scalar = float;
  double loss = 7;
  static std::vector<models::Parameter> parameters() { return {{.name = "one"}}; }
  static void initialise(std::span<float> w, Random&) { w[0] = 1; }
  static double gradient(std::span<const float>, const Indivisible&, models::Batch,
                         std::span<float>, models::ComputeContext&) {
    return 0;
  }
  models::Metrics evaluate(std::span<const float>, const Indivisible&, models::Batch,
                           models::ComputeContext&) const {
    return {{"loss", loss}};
  }
};

/// Returns a registry with the model `one` and the data source `whole`, which refuses n=13.
Registry user_registry() {
  return Registry{}.model<ConstantModel, Indivisible>("one", "").data(
      "whole", "", [](SpecReader& read, std::uint64_t) -> Result<Indivisible> {
        const auto n = static_cast<int>(read.count("n", 3));
        if (n == 13) return Error{"whole: n=13 is unlucky"};
        return Indivisible{n};
      });
}

TEST(Registry, BuiltInModelsComeInBothTypes) {
  const Registry registry = with_built_in({});
  const auto data = load_source(registry, "linear:d=4,n=10", 1);
  ASSERT_TRUE(data);
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    const auto model = make_model(registry, "linear", *data, type);
    ASSERT_TRUE(model);
    EXPECT_EQ((*model)->element_type(), type);
  }
  EXPECT_EQ((*make_model(registry, "linear", *data))->element_type(), ElementType::float32);
}

TEST(Registry, AUsersModelTakesOnlyItsOwnData) {
  const Registry registry = with_built_in(user_registry());
  const auto data = load_source(registry, "whole:n=5", 1);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->size(), 5U);
  EXPECT_EQ(data->table(), nullptr);
  const auto model = make_model(registry, "one", *data);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->print(), "one");
  EXPECT_EQ((*model)->metrics_of_one_sample(*data), (models::Metrics{{"loss", 7}}));
  EXPECT_FALSE((*model)->predict(Weights{std::vector<float>{1}}, *data).has_value());
  const auto table = load_source(registry, "linear:d=4,n=10", 1);
  EXPECT_FALSE((*model)->accepts(*table));
}

TEST(Registry, AModelIsConfiguredByTheFunctionThatMakesIt) {
  const auto data = AnyData::of(Indivisible{});
  const auto registry =
      Registry{}
          .model<ConstantModel, Indivisible>("plain", "")
          .model<ConstantModel, Indivisible>("set", "", [](SpecReader&, const Indivisible& whole) {
            return ConstantModel{.loss = 10.0 * whole.n};
          });
  const auto loss_of = [&](const char* name) {
    return (*make_model(registry, name, data))->metrics_of_one_sample(data)[0].value;
  };
  EXPECT_EQ(loss_of("plain"), 7);
  EXPECT_EQ(loss_of("set"), 30);
}

TEST(Registry, AUsersNameHidesABuiltInOne) {
  Registry own;
  own.data("digits", "",
           [](SpecReader&, std::uint64_t seed) { return Indivisible{static_cast<int>(seed)}; });
  const auto data = load_source(with_built_in(own), "digits", 9);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->size(), 9U);
}

TEST(Registry, FingerprintsOfDataOfAUsersTypeDifferWithTheLabels) {
  EXPECT_EQ(fingerprint(AnyData::of(Labelled{1})), fingerprint(AnyData::of(Labelled{1})));
  EXPECT_NE(fingerprint(AnyData::of(Labelled{1})), fingerprint(AnyData::of(Labelled{2})));
}

TEST(Registry, AUsersModelHidesABuiltInOneWithOtherElements) {
  const Registry registry = with_built_in(Registry{}.model<models::Linear<float>>());
  const auto data = load_source(registry, "linear:d=4,n=10", 1);
  ASSERT_TRUE(data);
  const auto model = make_model(registry, "linear", *data, ElementType::float64);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message, "model linear does not compute in float64; valid: float32");
}

TEST(Registry, AUsersSourceThatHidesABuiltInOneHasTheDefaultModelOfItsData) {
  const auto registry = with_built_in(Registry{}.data("digits", "", [](SpecReader&, std::uint64_t) {
    return models::Table{2, 3, models::Table::Dense{{1, 2, 3, 4, 5, 6}}, {0, 1, 2}};
  }));
  const auto data = load_source(registry, "digits", 1);
  ASSERT_TRUE(data);
  EXPECT_EQ(default_model(registry, "digits", *data), "softmax");
}

TEST(Registry, RefusesAUsersTableWithLabelsThatAreNotClasses) {
  const auto registry = with_built_in(Registry{}.data("mine", "", [](SpecReader&, std::uint64_t) {
    return models::Table{1, 2, models::Table::Dense{{1, 2}}, {1, 2}};
  }));
  const auto data = load_source(registry, "mine", 1);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().message, "mine: the label in row 2 is 2; valid: a class from 0 to 1");
}

TEST(Registry, AnAlgorithmIsTestedOnTheTestData) {
  const auto registry = Registry{}.algorithm<double, Indivisible>(
      "size", "", [](SpecReader&, const Indivisible& data) -> Result<actor::Algorithm<double>> {
        if (data.n == 13) return Error{"13 samples are unlucky"};
        return actor::Algorithm<double>{
            .tensors = {{"one"}},
            .hooks = {.push = [](auto&) -> std::vector<actor::Update<double>> { return {}; }},
            .evaluate = [n = data.n](const auto&) -> models::Metrics {
              return {{"samples", double(n)}};
            }};
      });
  const AnyData train = AnyData::of(Indivisible{5});
  const AnyData test = AnyData::of(Indivisible{2});
  const auto model = make_model(registry, "size", train);
  ASSERT_TRUE(model);
  actor::TrainOptions options;
  options.job.workers = 1;
  options.job.barrier = barrier::parse("asp").value();
  options.job.steps = 1;
  const auto outcome = (*model)->train(train, &test, options);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->last.test, (models::Metrics{{"samples", 2}}));
  EXPECT_FALSE((*model)->accepts(AnyData::of(Indivisible{13})));
}

TEST(Registry, AnAlgorithmIsNotTestedOnDataForWhichItHasOtherTensors) {
  const auto registry =
      Registry{}.algorithm<double>("wide", "", [](SpecReader&, const models::Table& data) {
        return actor::Algorithm<double>{
            .tensors = {{"wide", {data.features()}}},
            .hooks = {.push = [](auto&) -> std::vector<actor::Update<double>> { return {}; }},
            .evaluate = [](const auto& tensors) -> models::Metrics {
              return {{"sum", tensors.get("wide")[0]}};
            }};
      });
  const auto table = [](std::size_t features) {
    return AnyData::of(
        models::Table{features, 0, models::Table::Dense{std::vector<float>(features)}, {0}});
  };
  const auto model = make_model(registry, "wide", table(2));
  ASSERT_TRUE(model);
  EXPECT_TRUE((*model)->accepts(table(2)));
  EXPECT_EQ((*model)->accepts(table(300'000)).error().message,
            "algorithm wide has other tensors for this data than for its training data; valid: "
            "data of the same shape");
}

TEST(Registry, AnExceptionOfAnyTypeEndsTheProgram) {
  const std::array words{"mine", "train", "--data", "bad", "--model", "one"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      starling::main(static_cast<int>(words.size()), words.data(),
                     user_registry().data(
                         "bad", "", [](SpecReader&, std::uint64_t) -> Indivisible { throw 42; })),
      1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("unknown type"), std::string::npos);
}

TEST(Registry, AProgramWhoseModelHidesABuiltInOneStarts) {
  const std::array words{"mine", "models"};
  testing::internal::CaptureStdout();
  EXPECT_EQ(starling::main(2, words.data(), Registry{}.model<models::Linear<float>>()), 0);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("linear"), std::string::npos);
}

TEST(Registry, ABarrierThatHidesABuiltInOneIsRefusedWhateverTheCommand) {
  const auto rule = barrier::Predicate::make(
      "ssp", [](barrier::Step, std::span<const barrier::Step>) { return true; });
  testing::internal::CaptureStderr();
  const std::array words{"mine", "models"};
  EXPECT_EQ(starling::main(2, words.data(), Registry{}.barrier(rule)), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "mine: the label 'ssp' of your predicate is the name of a built-in barrier; valid: any "
            "other\n");
}

TEST(Registry, TwoBarriersCannotHaveOneName) {
  const auto rule = [](const char* label) {
    return barrier::Predicate::make(
        label, [](barrier::Step, std::span<const barrier::Step>) { return true; });
  };
  for (const char* second : {"half", "phalf"})
    EXPECT_FALSE(Registry{}.barrier(rule("half")).barrier(rule(second)).check()) << second;
  EXPECT_TRUE(Registry{}.barrier(rule("half")).barrier(rule("most")).check());
}

TEST(Registry, TwoModelsOrAlgorithmsCannotHaveOneName) {
  const std::string refusal =
      " of your own model, or algorithm, with float32 elements is given twice; valid: each name "
      "once for a type of elements and a type of data";
  const auto model = [](Registry registry, const char* name) {
    return registry.model<ConstantModel, Indivisible>(name, "");
  };
  EXPECT_TRUE(model(model({}, "one"), "other").check());
  EXPECT_EQ(model(model({}, "one"), "one").check().error().message, "the name 'one'" + refusal);
  const auto make = [](SpecReader&, const auto&) { return actor::Algorithm<float>{}; };
  EXPECT_EQ(model(Registry{}.algorithm<float, Indivisible>("one", "", make), "one")
                .check()
                .error()
                .message,
            "the name 'one'" + refusal);
  EXPECT_EQ(Registry{}
                .algorithm<float>("two", "", make)
                .algorithm<float>("two", "", make)
                .check()
                .error()
                .message,
            "the name 'two'" + refusal);
  EXPECT_TRUE(model(Registry{}.algorithm<float>("one", "", make), "one").check())
      << "their data have different types";
  EXPECT_TRUE(with_built_in({}).check()) << "built-in models have elements of two types";
}

TEST(Registry, AnIndivisibleTypeIsTrainedOnWhole) {
  const Registry registry = user_registry();
  const auto undivided = load_data(registry, {.data = "whole"});
  ASSERT_TRUE(undivided);
  EXPECT_EQ(undivided->train.size(), 3U);
  EXPECT_FALSE(undivided->test.has_value());
  const auto divided = load_data(registry, {.data = "whole", .holdout = 0.5});
  ASSERT_FALSE(divided);
  EXPECT_NE(divided.error().message.find("valid: --test SOURCE"), std::string::npos);
  const auto tested = load_data(registry, {.data = "whole", .test = "whole:n=8"});
  ASSERT_TRUE(tested);
  EXPECT_EQ(tested->test->size(), 8U);
}

TEST(Registry, AnErrorOfALoaderIsPassedOn) {
  EXPECT_EQ(load_source(user_registry(), "whole:n=13", 1).error().message,
            "whole: n=13 is unlucky");
  EXPECT_EQ(load_source(user_registry(), "whole:n=0", 1).error().message,
            "whole: holds no samples");
}

TEST(Fingerprint, ChangesWithAnyValueOrLabel) {
  const auto table = [](std::vector<float> x, std::vector<float> y) {
    return fingerprint(
        AnyData::of(models::Table{2, 0, models::Table::Dense{std::move(x)}, std::move(y)}));
  };
  const auto first = table({1, 2, 3, 4}, {0, 1});
  EXPECT_EQ(first, table({1, 2, 3, 4}, {0, 1}));
  EXPECT_NE(first, table({1, 2, 3, 5}, {0, 1}));
  EXPECT_NE(first, table({1, 2, 3, 4}, {1, 1}));
  EXPECT_NE(first, table({3, 4, 1, 2}, {0, 1}));
}

/// Returns a table whose features are in the file `name`.
models::Table map_table(const Folder& folder, const std::string& name, std::size_t features,
                        const std::vector<float>& x, std::vector<float> labels) {
  folder.write(name, {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)});
  auto file = MappedFile::open((folder.path() / name).string()).value();
  const std::span values{reinterpret_cast<const float*>(file->bytes().data()), x.size()};
  return {features, 0, models::Table::Mapped{std::move(file), values, {}}, std::move(labels)};
}

TEST(Fingerprint, OfAMappedTableChangesWithAnyLabelAndWithTheFirstRow) {
  const Folder folder;
  const std::size_t rows = 5000;
  std::vector<float> x(rows);
  std::vector<float> labels(rows);
  const auto hash_of = [&] {
    return fingerprint(AnyData::of(map_table(folder, "x", 1, x, labels)));
  };
  const auto first = hash_of();
  EXPECT_EQ(first, hash_of());
  labels[1] = 1;
  EXPECT_NE(first, hash_of());
  labels[1] = 0;
  x[0] = 1;
  EXPECT_NE(first, hash_of());
  x = {1, 2, 3, 4};
  labels = {0, 1};
  EXPECT_EQ(fingerprint(AnyData::of(map_table(folder, "y", 2, x, labels))),
            fingerprint(AnyData::of(models::Table{2, 0, models::Table::Dense{x}, labels})))
      << "all values of a small table count";
}

TEST(Scaling, RefusesMappedTables) {
  const Folder folder;
  const auto data = AnyData::of(map_table(folder, "x", 1, {1, 200}, {0, 1}));
  const Registry registry = with_built_in(Registry{});
  models::Recipe recipe;
  recipe.standardises = true;
  EXPECT_EQ(scale_of(registry, {.data = "npy:x"}, recipe, data), models::Scale::none);
  EXPECT_TRUE(scale_data(models::Scale::none, {data, data}));
  EXPECT_EQ(scale_data(models::Scale::standard, {data, std::nullopt}).error().message,
            "scale: standard would copy mapped data into memory; valid: none, or data without "
            "mapped=yes");
  const auto in_memory = AnyData::of(models::Table{1, 0, models::Table::Dense{{1, 3}}, {0, 1}});
  EXPECT_FALSE(scale_data(models::Scale::standard, {in_memory, data}));
  const auto scaled = scale_data(models::Scale::standard, {in_memory, in_memory});
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scale_like(*scaled->train.table(), data).error().message,
            "is mapped, but the model was trained on scaled features; valid: without mapped=yes");
  EXPECT_TRUE(scale_like(*in_memory.table(), data));
}

}  // namespace
}  // namespace starling::program
