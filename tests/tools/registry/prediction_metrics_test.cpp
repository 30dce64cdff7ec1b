#include "starling/tools/registry/prediction_metrics.hpp"

#include <gtest/gtest.h>

#include "starling/tools/job/target.hpp"
#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/registry/data.hpp"

namespace starling::program {
namespace {

using Names = std::vector<std::string>;

/// Returns a table of one feature with these labels, of `count` classes that the file numbers
/// from 1.
AnyData classes(std::size_t count, std::vector<float> labels) {
  const std::size_t rows = labels.size();
  std::vector<float> values;
  for (std::size_t i = 0; i < rows; ++i) values.push_back(static_cast<float>(i));
  models::Table table{1, count, models::Table::Dense{std::move(values)}, std::move(labels)};
  table.labelling = {.classes = count, .first_label = 1, .is_signed = false};
  return AnyData::of(std::move(table));
}

/// Returns the names of the metrics that `evaluate` computes for a model.
Names names_of(const std::string& model, const AnyData& data) {
  const Registry registry = with_built_in({});
  return metric_names(*make_model(registry, model, data, std::nullopt).value(), data);
}

TEST(PredictionMetrics, HaveNamesForTwoClasses) {
  EXPECT_EQ(
      names_of("softmax", classes(2, {0, 1, 0, 1})),
      (Names{"auc", "precision", "recall", "precision:1", "precision:2", "recall:1", "recall:2"}));
}

TEST(PredictionMetrics, HaveNoAucForMoreThanTwoClasses) {
  const Names names = names_of("softmax", classes(3, {0, 1, 2, 1}));
  EXPECT_EQ(names[0], "precision");
  EXPECT_EQ(names.back(), "recall:3");
}

/// The receiver operating characteristic needs samples of two classes.
TEST(PredictionMetrics, HaveNoAucIfTheTestDataHasOneClass) {
  const Names names = names_of("softmax", classes(2, {1, 1, 1}));
  EXPECT_EQ(std::ranges::count(names, "auc"), 0);
}

TEST(PredictionMetrics, RankSamplesByTheScoreOfClass1) {
  const AnyData data = classes(2, {0, 0, 1, 0, 1});
  const Registry registry = with_built_in({});
  const auto model = make_model(registry, "softmax:bias=0", data, std::nullopt).value();
  // Sample i has the feature i: class 1 has the higher score from sample 1 on.
  const auto metrics = prediction_metrics(*model, std::vector<float>{-1, 1}, data);
  EXPECT_DOUBLE_EQ(metrics.auc.value(), 5.0 / 6);
  EXPECT_DOUBLE_EQ(prediction_metrics(*model, std::vector<float>{1, -1}, data).auc.value(),
                   1.0 / 6);
}

TEST(PredictionMetrics, HaveNamesForTargets) {
  EXPECT_EQ(names_of("linear", load_source(with_built_in({}), "linear:d=3,n=20", 1).value()),
            (Names{"mae", "rmse", "r2"}));
}

TEST(PredictionMetrics, PrecisionAndRecallAreMeansOverClasses) {
  PredictionMetrics metrics;
  // The labels are 0 0 1 1, without class 2; the predictions are 0 0 0 2.
  metrics.classes =
      classification_metrics(3, std::vector<float>{0, 0, 1, 1}, std::vector<float>{0, 0, 0, 2});
  EXPECT_DOUBLE_EQ(*macro_precision(*metrics.classes), (2.0 / 3 + 0) / 2);
  EXPECT_DOUBLE_EQ(*macro_recall(*metrics.classes), 0.5);
  const models::Labelling labelling{.classes = 3, .first_label = 1, .is_signed = false};
  EXPECT_DOUBLE_EQ(*metric_of(metrics, labelling, "precision:1"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(*metric_of(metrics, labelling, "recall:2"), 0);
  EXPECT_FALSE(metric_of(metrics, labelling, "precision:2"))
      << "no sample was predicted as the class labelled 2";
  EXPECT_FALSE(metric_of(metrics, labelling, "recall:4"));
  EXPECT_FALSE(metric_of(metrics, labelling, "auc"));
  EXPECT_FALSE(metric_of(metrics, labelling, "support:1"));
}

TEST(Goal, TakesTheFiguresOfEvaluate) {
  const models::Metrics own{{"loss", 1}, {"accuracy", 0}};
  const Names more{"auc", "r2", "rmse", "recall", "recall:2"};
  for (const char* text : {"auc=0.9", "recall:2>=0.5", "r2=-1", "rmse<=4", "accuracy=1"})
    EXPECT_TRUE(check_target(parse_target(text).value(), own, more)) << text;
  const auto refusal = [&](const char* text) {
    const auto checked = check_target(parse_target(text).value(), own, more);
    return checked ? "accepted" : checked.error().message;
  };
  EXPECT_EQ(
      refusal("auc=1.5"),
      "until: 'auc>=1.5' asks for a value that the metric cannot have; valid: auc from 0 to 1");
  EXPECT_EQ(
      refusal("r2=1.5"),
      "until: 'r2>=1.5' asks for a value that the metric cannot have; valid: r2 of 1 or less");
  EXPECT_EQ(refusal("recall<=0.5"),
            "until: 'recall<=0.5' would be reached by getting worse; valid: recall>=0.5");
  EXPECT_EQ(refusal("recall:3=0.5"),
            "until: the model has no metric 'recall:3' on this test data; did you mean 'recall:2'? "
            "valid: loss, accuracy, auc, r2, rmse, recall, recall:2");
}

}  // namespace
}  // namespace starling::program
