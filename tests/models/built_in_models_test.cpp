#include "starling/models/built_in/built_in_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "starling/models/evaluate.hpp"
#include "tests/models/model_data.hpp"

namespace starling::models {
namespace {

/// Returns the error of reading the model `text` for `data`.
std::string error_of(const char* text, const Table& data) {
  return parse_model<float>(text, data).error().message;
}

TEST(BuiltInModels, PrintsWhatItReads) {
  const Table three_classes = dense_table(9, 4, 3);
  const Table two_classes = sparse_table(9, 4, 2);
  const Table real_targets = dense_table(9, 4, 0);
  const auto printed = [](const char* text, const Table& data) {
    return print(parse_model<double>(text, data).value());
  };
  EXPECT_EQ(printed("linear", real_targets), "linear");
  EXPECT_EQ(printed("linear:bias=1", real_targets), "linear");
  EXPECT_EQ(printed("linear:bias=0", real_targets), "linear:bias=0");
  EXPECT_EQ(printed("logistic:bias=1", two_classes), "logistic");
  EXPECT_EQ(printed("softmax:bias=0", three_classes), "softmax:bias=0");
  EXPECT_EQ(printed("svm", two_classes), "svm");
  EXPECT_EQ(printed("mlp:4-7-3", three_classes), "mlp:4-7-3");
  EXPECT_EQ(printed("mlp:4-7-5-1,activation=tanh", real_targets), "mlp:4-7-5-1,activation=tanh");
  const Table ratings{2, 0, Table::Dense{{0, 4, 2, 1}}, {3, 5}};
  EXPECT_EQ(printed("mf", ratings), "mf:rank=16,users=3,items=5");
  EXPECT_EQ(printed("mf:rank=2,users=9", ratings), "mf:rank=2,users=9,items=5");
  EXPECT_EQ(printed("mf:rank=2,users=9,items=5", ratings), "mf:rank=2,users=9,items=5");
}

TEST(BuiltInModels, RefusesInvalidTexts) {
  const Table data = dense_table(9, 4, 3);
  EXPECT_EQ(error_of("sotfmax", data),
            "unknown model 'sotfmax'; did you mean 'softmax'? valid: linear, logistic, softmax, "
            "svm, mf, mlp, net, lenet5, psp-cnn, vgg-small, resnet-small");
  EXPECT_EQ(error_of("", data), "model: '' has no name; valid: NAME or NAME:OPTIONS");
  EXPECT_EQ(error_of("softmax:bias=2", data),
            "softmax: bias=2 must be a whole number >= 0 and <= 1");
  EXPECT_EQ(error_of("softmax:rank=2", data), "softmax: unknown option 'rank'; valid: bias");
  EXPECT_EQ(error_of("mf:rank=0", data), "mf: rank=0 must be a whole number >= 1 and <= 65536");
  EXPECT_EQ(error_of("mlp", data), "mlp: needs its widths, e.g. mlp:784-128-10");
  EXPECT_EQ(error_of("mlp:784", data), "mlp: '784' is not a list of widths like 784-128-10");
  EXPECT_EQ(error_of("mlp:4-0-3", data), "mlp: '4-0-3' is not a list of widths like 784-128-10");
  EXPECT_EQ(error_of("mlp:4--3", data), "mlp: '4--3' is not a list of widths like 784-128-10");
  EXPECT_EQ(error_of("mlp:4-3,activation=relo", data),
            "mlp: unknown activation 'relo'; did you mean 'relu'? valid: relu, tanh");
}

TEST(BuiltInModels, RefusesUnsuitableTrainingData) {
  const Table ten_classes = dense_table(40, 4, 10);
  const Table real_targets = dense_table(9, 4, 0);
  EXPECT_EQ(error_of("logistic", ten_classes),
            "logistic needs 2 classes, but the data has 10 classes");
  EXPECT_EQ(error_of("logistic", real_targets),
            "logistic needs 2 classes, but the data has real targets");
  EXPECT_EQ(error_of("linear", ten_classes),
            "linear needs real targets, but the data has 10 classes");
  EXPECT_EQ(error_of("softmax", real_targets),
            "softmax needs 2 or more classes, but the data has real targets");
  EXPECT_EQ(error_of("svm", dense_table(3, 4, 1)),
            "svm needs 2 or more classes, but the data has 1 class");
  EXPECT_EQ(error_of("mlp:784-128-10", ten_classes),
            "mlp:784-128-10 starts with another width than the data's 4 features; "
            "use mlp:4-128-10");
  EXPECT_EQ(error_of("mlp:4-128-9", ten_classes),
            "mlp:4-128-9 ends with another width than the data's 10 classes; use mlp:4-128-10");
  EXPECT_EQ(error_of("mlp:4-8-2", real_targets),
            "mlp:4-8-2 must end with width 1 for real targets; use mlp:4-8-1");
  EXPECT_EQ(error_of("mf", ten_classes), "mf needs 2 features (user, item), but the data has 4");
  EXPECT_EQ(error_of("mf", dense_table(9, 2, 3)),
            "mf needs ratings as real targets, but the data has 3 classes");
  EXPECT_EQ(error_of("mf", sparse_table(9, 2, 0)),
            "mf needs dense rows (user, item), but the data has sparse ones");
  const Table fractional_id{2, 0, Table::Dense{{0, 1, 2, 1.5F}}, {3, 5}};
  EXPECT_EQ(error_of("mf", fractional_id),
            "mf: the item id in row 2 is not a whole number from 0 to 16777215");
  const Table large_id{2, 0, Table::Dense{{0, 1, 7, 1}}, {3, 5}};
  EXPECT_EQ(
      error_of("mf:users=7", large_id),
      "mf: the user id in row 2 is 7, but the model has ids from 0 to 6; valid: mf:users=N with N "
      "above the largest id of all data");
}

TEST(BuiltInModels, RefuseDataThatDiffersFromTheTrainingData) {
  // Returns why a model that was built for `training_data` refuses `other`; empty if it accepts it.
  const auto refused = [](const char* text, const Table& training_data, const Table& other) {
    const auto model = parse_model<float>(text, training_data).value();
    const auto accepted = std::visit([&](const auto& any) { return any.accepts(other); }, model);
    return accepted ? std::string{} : accepted.error().message;
  };
  const Table dense = dense_table(9, 4, 3);
  EXPECT_EQ(refused("softmax", dense, dense_table(5, 4, 3)), "");
  EXPECT_EQ(refused("softmax", dense, dense_table(5, 4, 2)), "");
  EXPECT_EQ(refused("softmax", dense, dense_table(5, 6, 3)),
            "softmax was built for 4 features, but the data has 6");
  EXPECT_EQ(refused("softmax", dense, Table{4, 3, Table::Dense{{1, 2, 3, 4}}, {3}}),
            "softmax: the label in row 1 is 3; valid: a class from 0 to 2");
  EXPECT_EQ(refused("mlp:4-3", dense, dense_table(5, 4, 5)),
            "mlp was built for 3 classes, but the data has 5 classes");
  EXPECT_EQ(refused("svm", dense, dense_table(5, 4, 0)),
            "svm was built for 3 classes, but the data has real targets");
  EXPECT_EQ(refused("svm", dense, sparse_table(5, 4, 3)),
            "svm was built for dense rows, but the data has sparse ones");
  const Table sparse = sparse_table(9, 8, 2);
  EXPECT_EQ(refused("logistic", sparse, sparse_table(9, 7, 2)), "");
  EXPECT_EQ(refused("logistic", sparse, sparse_table(9, 9, 2)),
            "logistic was built for 8 features, but the data has 9; train with features=9 or more, "
            "as in libsvm:FILE,features=N");
  const Table ratings{2, 0, Table::Dense{{0, 4, 2, 1}}, {3, 5}};
  EXPECT_EQ(
      refused("mf", ratings, Table{2, 0, Table::Dense{{3, 0}}, {1}}),
      "mf: the user id in row 1 is 3, but the model has ids from 0 to 2; valid: mf:users=N with N "
      "above the largest id of all data");
}

TEST(BuiltInModels, NamesEveryModelOnce) {
  const auto entries = model_entries();
  ASSERT_EQ(entries.size(), 11U);
  for (const auto& [name, summary] : entries) {
    EXPECT_NE(summary.find(name), std::string_view::npos) << name;
    EXPECT_EQ(std::ranges::count(entries, name, &ModelEntry::name), 1);
  }
}

/// evaluate_all() and predict_all() pass the rows in batches, of which the last one is shorter.
TEST(BuiltInModels, AreEvaluatedOverAllBatchesOfALargeTable) {
  const Table data = dense_table(2 * evaluation_batch_max + 100, 3, 0);
  const auto model = std::get<Linear<double>>(parse_model<double>("linear", data).value());
  const std::vector<double> w{0.5, -2, 3, 1};
  Arena arena;
  const auto predicted = predict_all(model, std::span{w}, data, arena);
  ASSERT_EQ(predicted.size(), data.size());
  double squares = 0;
  for (std::size_t row = 0; row < data.size(); ++row) {
    const auto x = data.dense_row(row);
    const double score = std::inner_product(x.begin(), x.end(), w.begin(), w[3]);
    ASSERT_NEAR(predicted[row], score, 1e-5) << row;
    squares += (score - static_cast<double>(data.label(row))) *
               (score - static_cast<double>(data.label(row)));
  }
  const auto metrics = evaluate_all(model, std::span{w}, data, arena);
  EXPECT_NEAR(metrics[0].value, squares / 2 / static_cast<double>(data.size()), 1e-9);
}

TEST(BuiltInModels, ParameterShapesFollowFromTheData) {
  const auto parameters = [](const char* text, const Table& data) {
    const auto model = parse_model<float>(text, data).value();
    return std::visit([](const auto& any) { return any.parameters(); }, model);
  };
  const auto linear = parameters("linear", dense_table(9, 1000, 0));
  ASSERT_EQ(linear.size(), 2U);
  EXPECT_EQ(linear[0].shape, std::vector<std::size_t>{1000});
  EXPECT_FALSE(linear[0].row_sparse);
  EXPECT_EQ(linear[1].shape, std::vector<std::size_t>{1});
  const auto softmax = parameters("softmax", sparse_table(30, 6, 4));
  EXPECT_EQ(softmax[0].shape, (std::vector<std::size_t>{6, 4}));
  EXPECT_TRUE(softmax[0].row_sparse);
  EXPECT_FALSE(softmax[1].decay);
  EXPECT_EQ(total_size(parameters("mlp:784-512-512-10", dense_table(9, 784, 10))), 669706U);
  EXPECT_EQ(total_size(parameters("svm", dense_table(9, 5, 2))), 6U);
  const Table ratings{2, 0, Table::Dense{{0, 4, 2, 1}}, {3, 5}};
  EXPECT_EQ(total_size(parameters("mf:rank=2", ratings)), (3U + 5U) * 3U + 1U);
}

/// A model whose metrics depend on whether the batch has the sample 0.
struct ChangingMetrics {
  using Scalar = float;
  Metrics first;
  Metrics others;
  static std::vector<Parameter> parameters() { return {{.name = "w"}}; }
  static void initialise(std::span<float>, Random&) {}
  static double gradient(std::span<const float>, const Table&, Batch, std::span<float>,
                         ComputeContext&) {
    return 0;
  }
  [[nodiscard]] Metrics evaluate(std::span<const float>, const Table&, Batch batch,
                                 ComputeContext&) const {
    return batch.front() == 0 ? first : others;
  }
};

TEST(EvaluateAll, RefusesMetricsThatChangeFromBatchToBatch) {
  const std::size_t rows = evaluation_batch_max + 1;
  const Table data{1, 0, Table::Dense{std::vector<float>(rows)}, std::vector<float>(rows)};
  const std::vector<float> w{0};
  const auto evaluated = [&](const Metrics& first, const Metrics& others) {
    Arena arena;
    return evaluate_all(ChangingMetrics{first, others}, std::span{w}, data, arena);
  };
  EXPECT_EQ(evaluated({{"loss", 1}}, {{"loss", 1}}).size(), 1U);
  EXPECT_TRUE(evaluated({}, {}).empty());
  const Metrics two{{"loss", 1}, {"recall", 0}};
  for (const Metrics& others :
       {Metrics{}, Metrics{{"loss", 1}}, Metrics{{"recall", 0}, {"loss", 1}}}) {
    EXPECT_THROW((void)evaluated(two, others), std::runtime_error);
    EXPECT_THROW((void)evaluated(others, two), std::runtime_error);
  }
  const Metrics twice{{"loss", 1}, {"loss", 2}};
  EXPECT_THROW((void)evaluated(twice, twice), std::runtime_error);
}

}  // namespace
}  // namespace starling::models
