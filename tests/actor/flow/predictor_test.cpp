/// Models that predict the samples of data sets.
#include <set>
#include <stdexcept>

#include "starling/actor/flow/predictor.hpp"
#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/scaling.hpp"
#include "tests/actor/flow/flow_cases.hpp"
#include "tests/models/model_data.hpp"

namespace starling::flow {
namespace {

using models::Table;

/// Returns random parameters for a model.
template <class M>
std::vector<typename M::Scalar> draw_parameters(const M& model) {
  Random random{9};
  std::vector<typename M::Scalar> w(models::total_size(model.parameters()));
  for (auto& x : w) x = static_cast<typename M::Scalar>(random.normal());
  return w;
}

template <class M>
M make_model(const std::string& text, const Table& data) {
  return M::parse(Spec::parse(text).value(), data).value();
}

TEST(Predict, EqualsThePredictionsOfTheTable) {
  const Table data = models::dense_table(1000, 7, 4);
  const auto model = make_model<models::Softmax<float>>("softmax", data);
  const auto w = draw_parameters(model);
  models::Arena arena;
  const auto expected = models::predict_all(model, std::span{w}, data, arena);
  const Predictor predictor{model, w, data};
  for (const std::size_t threads : {1, 8}) {
    const auto engine = make_engine(threads, static_cast<Part>(threads));
    const Set<Sample> set = samples(engine, data).value();
    const auto found = predict(set, predictor).collect().value();
    ASSERT_EQ(found.size(), data.size());
    for (std::size_t row = 0; row < found.size(); ++row) {
      EXPECT_EQ(found[row].second, expected[row]);
      EXPECT_EQ(found[row].first.label, data.label(row));
      EXPECT_TRUE(std::ranges::equal(found[row].first.features, data.dense_row(row)));
    }
    EXPECT_EQ(predictor(found[5].first), expected[5]);
    EXPECT_EQ(predict(set, predictor).take(300).value().size(), 300U);
  }
}

TEST(Predict, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Table data = models::dense_table(900, 30, 0);
  const auto model = make_model<models::Linear<float>>("linear", data);
  const Predictor predictor{model, draw_parameters(model), data};
  const auto predict_with = [&](std::size_t threads) {
    const auto set = samples(make_engine(threads), data).value();
    return predict(set, predictor).collect().value();
  };
  const auto expected = predict_with(1);
  for (const std::size_t threads : {2, 5, 8}) EXPECT_EQ(predict_with(threads), expected);
}

TEST(Predict, ReadsSparseSamples) {
  const Table data = models::sparse_table(400, 20, 2);
  const auto model = make_model<models::Logistic<double>>("logistic", data);
  const auto w = draw_parameters(model);
  models::Arena arena;
  const auto expected = models::predict_all(model, std::span{w}, data, arena);
  const auto set = sparse_samples(make_engine(3), data).value();
  const auto found = predict(set, Predictor{model, w, data}).collect().value();
  ASSERT_EQ(found.size(), data.size());
  for (std::size_t row = 0; row < found.size(); ++row)
    EXPECT_EQ(found[row].second, expected[row]) << "row " << row;
}

TEST(Predict, ScalesSamplesLikeTheTrainingData) {
  Table raw = models::dense_table(300, 4, 0);
  const Table scaled = models::scaled(raw, models::fit(models::Scale::minmax, raw),
                                      models::fit_targets(models::Scale::standard, raw));
  const auto model = make_model<models::Linear<double>>("linear", scaled);
  const auto w = draw_parameters(model);
  models::Arena arena;
  const auto expected = models::predict_all(model, std::span{w}, scaled, arena);
  const auto set = samples(make_engine(2), raw).value();
  const auto found = predict(set, Predictor{model, w, scaled}).collect().value();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t row = 0; row < found.size(); ++row)
    EXPECT_FLOAT_EQ(found[row].second,
                    expected[row] * scaled.labelling.divisor + scaled.labelling.shift);
}

TEST(Predict, LabelsAreWrittenAsInTheTrainingData) {
  Table data = models::dense_table(50, 3, 2);
  data.labelling = {.classes = 2, .first_label = -1, .is_signed = true};
  const auto model = make_model<models::Logistic<float>>("logistic", data);
  const auto w = draw_parameters(model);
  const auto set = samples(make_engine(2), data).value();
  std::set<float> labels;
  for (const auto& [sample, label] : predict(set, Predictor{model, w, data}).collect().value())
    labels.insert(label);
  EXPECT_EQ(labels, (std::set<float>{-1, 1}));
}

TEST(Predict, TakesTheSampleOfARecord) {
  const Table data = models::dense_table(60, 3, 2);
  const auto model = make_model<models::Logistic<float>>("logistic", data);
  const Predictor predictor{model, draw_parameters(model), data};
  const auto set = samples(make_engine(2), data).value();
  const auto sample_of = [](const auto& record) -> const Sample& { return record.second; };
  const auto name = [](const Sample& sample) { return print_number(double{sample.features[0]}); };
  const auto named = predict(set.key_by(name), predictor, sample_of).collect().value();
  const auto plain = predict(set, predictor).collect().value();
  ASSERT_EQ(named.size(), plain.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    EXPECT_EQ(named[i].first.first, name(plain[i].first));
    EXPECT_EQ(named[i].second, plain[i].second);
  }
}

/// A predictor of the first feature, for samples of two features.
Predictor first_feature() {
  const auto first = [](const Table& data) {
    std::vector<float> values;
    for (std::size_t row = 0; row < data.size(); ++row) values.push_back(data.dense_row(row)[0]);
    return values;
  };
  return {first, models::dense_table(1, 2, 0)};
}

TEST(Predict, ErrorsNameTheRecord) {
  const auto engine = make_engine(2, 1);
  std::vector<Sample> data(600, Sample{{1, 2}, 0});
  data[400].features.push_back(3);
  EXPECT_EQ(predict(engine.collection(data), first_feature()).count().error().message,
            "collection: record 400: the sample has 3 features; valid: 2");
  data[400].features = {7, 2};
  const auto refuse = [](const std::pair<Sample, float>& record) {
    if (record.second == 7) throw std::runtime_error{"a seven"};
    return record.second;
  };
  EXPECT_EQ(predict(engine.collection(data), first_feature()).map(refuse).count().error().message,
            "predict: part 0, record 400: a seven");
  data[400].features = {1, 2};
  EXPECT_EQ(predict(engine.collection(data), first_feature()).map(refuse).count().value(), 600U);
}

TEST(Predict, RefusesSamplesOfAnotherKind) {
  const auto set = make_engine(1, 1).collection(std::vector<SparseSample>{{{0}, {1}, 0}});
  EXPECT_EQ(predict(set, first_feature()).count().error().message,
            "predict: part 0, record 0: the model was trained on dense samples; valid: Sample");
  const Predictor silent{[](const Table&) { return std::vector<float>{}; },
                         models::dense_table(1, 1, 0)};
  EXPECT_THROW((void)silent(Sample{{1}, 0}), std::runtime_error);
}

}  // namespace
}  // namespace starling::flow
