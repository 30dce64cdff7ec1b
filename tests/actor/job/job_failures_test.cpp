// Tests how jobs fail: because of steps and callbacks that throw, and of invalid models.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "tests/actor/job/faulty_model.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

TEST_P(EveryMode, TriesAThrowingStepAgain) {
  TrainOptions job = options();
  job.job.steps = 5;
  job.job.attempts = 3;
  const FaultyModel model{.throws_max = 2};
  const Outcome outcome = train<FaultyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  EXPECT_EQ(outcome.last.updates, 15U);
  EXPECT_EQ(*model.calls, 17);
}

TEST_P(EveryMode, GivesUpOnAStepThatKeepsThrowing) {
  TrainOptions job = options();
  job.job.steps = 5;
  job.job.attempts = 4;
  const Outcome outcome =
      train<FaultyModel, models::Table>({.throws_max = 1000}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("failed 4 times at step 1: not in the mood"), std::string::npos)
      << outcome.error;
}

TEST_P(EveryMode, FailsAtAGradientThatIsNotFiniteAndKeepsTheLastGoodModel) {
  TrainOptions job = options();
  job.job.steps = 100;
  const FaultyModel model{.nan_from = 30};
  const Outcome outcome = train<FaultyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("worker "), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find(", step "), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("not finite"), std::string::npos) << outcome.error;
  const auto w = parameters_of(model, job, outcome);
  ASSERT_EQ(w.size(), 10U);
  for (const float x : w) EXPECT_TRUE(std::isfinite(x));
  EXPECT_LT(w[0], 1.0F) << "the good updates are in the model";
}

TEST_P(EveryMode, FailsWithTheErrorOfTheLastEvaluationAndKeepsTheModel) {
  TrainOptions job = options();
  job.job.steps = 5;
  const FaultyModel model{.on_evaluate = [] { throw std::runtime_error{"no figures"}; }};
  Outcome outcome = train<FaultyModel, models::Table>(model, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_EQ(outcome.error, "evaluation: no figures");
  EXPECT_EQ(parameters_of(model, job, outcome).size(), 10U);
}

/// A user's callback may throw any type. The job fails with an error that names the callback, and
/// keeps its model if it had started.
TEST_P(EveryMode, FailsInOrderIfACallbackThrowsAnything) {
  TrainOptions quick = options();
  quick.job.progress_every = 1ms;
  quick.job.evaluate_every = 1;
  quick.job.checkpoint_every = 1;
  TrainOptions throws_on_start = quick;
  throws_on_start.job.on_start = [](const auto&, auto&) { throw 42; };
  TrainOptions throws_on_progress = quick;
  throws_on_progress.job.on_progress = [](const auto&) -> bool { throw 42; };
  TrainOptions throws_on_checkpoint = quick;
  throws_on_checkpoint.job.on_checkpoint = [](const auto&, const auto&) { throw 42; };
  TrainOptions throws_in_stop_when = quick;
  throws_in_stop_when.job.stop_when = [](const auto&, const auto&) -> bool { throw 42; };
  const std::string unknown = ": an exception of unknown type";
  for (const auto& [job, error] : {std::pair{&throws_on_start, "on_start"},
                                   {&throws_on_progress, "on_progress"},
                                   {&throws_on_checkpoint, "on_checkpoint"},
                                   {&throws_in_stop_when, "evaluation"}}) {
    const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, *job).value();
    EXPECT_EQ(outcome.end, Outcome::End::failed);
    EXPECT_EQ(outcome.error, error + unknown);
    EXPECT_EQ(outcome.model.empty(), job == &throws_on_start) << error;
  }
  const FaultyModel throws_on_evaluate{.on_evaluate = [] { throw 42; }};
  const Outcome outcome =
      train<FaultyModel, models::Table>(throws_on_evaluate, data_, &data_, quick).value();
  EXPECT_EQ(outcome.error, "evaluation" + unknown);
}

/// A model with invalid parameters, which is refused before the job starts.
struct InvalidModel : FaultyModel {
  std::vector<models::Parameter> invalid;
  std::function<void()> on_initialise = [] {};

  [[nodiscard]] std::vector<models::Parameter> parameters() const { return invalid; }
  void initialise(std::span<float>, Random&) const { on_initialise(); }
};

TEST(InvalidParameters, AreRefused) {
  const models::Table data = load("linear:d=5,n=60");
  const auto refusal = [&](
                           std::vector<models::Parameter> invalid,
                           const std::function<void()>& on_initialise = [] {}) {
    const InvalidModel model{{}, std::move(invalid), on_initialise};
    const auto outcome =
        train<InvalidModel, models::Table>(model, data, nullptr, endless_options());
    return outcome.ok() ? "accepted" : outcome.error().message;
  };
  EXPECT_EQ(refusal({}), "the model has no parameters: there is nothing to train");
  EXPECT_EQ(refusal({{.name = ""}}), "a parameter has no name");
  EXPECT_EQ(refusal({{.name = "a"}, {.name = "a"}}),
            "parameter 'a' is given twice; valid: each name once");
  EXPECT_EQ(refusal({{.name = "a", .shape = {3, 0}}}),
            "parameter 'a': shape [3, 0] has no elements; every extent is at least 1");
  EXPECT_EQ(refusal({{.name = "a", .shape = {1UL << 40U, 1UL << 40U}}}),
            "parameter 'a': shape [1099511627776, 1099511627776] has more elements than any memory "
            "holds");
  EXPECT_EQ(refusal({{.name = "a", .row_sparse = true}}),
            "parameter 'a': a scalar has no rows; give it a shape, or make it dense");
  EXPECT_EQ(refusal({{.name = "a"}}, [] { throw std::runtime_error{"no start"}; }),
            "initialise: no start");
}

struct ModelOfInvalidRows : FaultyModel {
  std::vector<models::TouchedRows> rows;

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "table", .shape = {4, 2}, .row_sparse = true}, {.name = "bias"}};
  }
  [[nodiscard]] std::vector<models::TouchedRows> touched(const models::Table&,
                                                         models::Batch) const {
    return rows;
  }
};

TEST(InvalidTouchedRows, FailTheJobWithTheReason) {
  const models::Table data = load("linear:d=5,n=60");
  const auto failure = [&](std::vector<models::TouchedRows> rows) {
    const ModelOfInvalidRows model{{}, std::move(rows)};
    const auto outcome =
        train<ModelOfInvalidRows, models::Table>(model, data, nullptr, endless_options());
    const std::string error = outcome.value().error;
    return error.substr(error.find("touched"));
  };
  EXPECT_EQ(failure({{2, {0}}}),
            "touched(): parameter 2: the model has no such parameter; valid: 0 to 1");
  EXPECT_EQ(failure({{1, {0}}}),
            "touched(): parameter 1: is not row-sparse; valid: a parameter with row_sparse set");
  EXPECT_EQ(failure({{0, {2, 1}}}),
            "touched(): parameter 0: row 1 follows row 2; valid: ascending rows, each once");
  EXPECT_EQ(failure({{0, {1, 4}}}), "touched(): parameter 0: has no row 4; valid: rows 0 to 3");
}

barrier::Barrier throwing_barrier() {
  return barrier::sampled(
      barrier::Predicate::make("moody",
                               [](barrier::Step, std::span<const barrier::Step>) -> bool {
                                 throw std::runtime_error{"no opinion"};
                               }),
      2);
}

TEST_P(EveryMode, EndsWithTheErrorOfAThrowingPredicate) {
  TrainOptions job = options();
  job.job.barrier = throwing_barrier();
  const Outcome outcome = train<FaultyModel, models::Table>({}, data_, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("no opinion"), std::string::npos) << outcome.error;
}

TEST(PredicateOfPaces, EndsTheJobWithItsErrorIfItThrows) {
  const models::Table data = load("linear:d=5,n=60");
  TrainOptions job = endless_options();
  job.job.mode = core::Mode::central;
  job.job.barrier = {barrier::Predicate::of_paces(
      "moody", [](const barrier::Pace&, std::span<const barrier::Pace>) -> bool {
        throw std::runtime_error{"no opinion"};
      })};
  const Outcome outcome = train<FaultyModel, models::Table>({}, data, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::failed);
  EXPECT_NE(outcome.error.find("no opinion"), std::string::npos) << outcome.error;
}

TEST(Job, EndsThoughAUserKeepsItsActors) {
  TrainOptions job = endless_options();
  job.job.time.reset();
  job.job.steps = 5;
  JobActorsPtr kept;
  job.job.on_start = [&](const JobActorsPtr& actors, caf::actor_system&) { kept = actors; };
  const Outcome outcome =
      train<FaultyModel, models::Table>({}, load("linear:d=5,n=60"), nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  post(kept->job, core::Stop{});  // does nothing: the job is over
}

TEST(Job, IsRefusedIfNoEvaluationCouldEndIt) {
  const models::Table data = load("linear:d=5,n=60");
  TrainOptions job = endless_options();
  job.job.time.reset();
  job.job.until = Target{"loss", 0.5, false};
  std::stop_source source;  // ends the job if it is not refused
  source.request_stop();
  job.job.stop = source.get_token();
  EXPECT_FALSE((train<FaultyModel, models::Table>({}, data, &data, job)));
  job.job.evaluate_every = 1;
  EXPECT_FALSE((train<FaultyModel, models::Table>({}, data, nullptr, job)));
}

struct WiderModel : FaultyModel {
  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {500}}};
  }
};

TEST(Job, RefusesSavedStatesThatDoNotFit) {
  const models::Table data = load("linear:d=5,n=60");
  TrainOptions job = endless_options();
  job.job.time.reset();
  job.job.steps = 5;
  job.resume = train<FaultyModel, models::Table>({}, data, nullptr, job).value().model;
  const auto other = train<WiderModel, models::Table>({}, data, nullptr, job);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "the saved state: holds range 0 with 10 elements and 0 of the optimizer's state; "
            "valid: 500 and 0");
  job.job.workers = 2;
  job.job.barrier = barrier::parse("asp").value();
  const auto fewer = train<FaultyModel, models::Table>({}, data, nullptr, job);
  ASSERT_FALSE(fewer);
  EXPECT_EQ(
      fewer.error().message,
      "the saved state: holds steps of 3 workers; valid: up to 2, the number of the job's workers");
}

struct HugeData {
  [[nodiscard]] std::size_t size() const { return 5'000'000'000; }
};

struct HugeModel : FaultyModel {
  double gradient(std::span<const float>, const HugeData&, models::Batch, std::span<float>,
                  models::ComputeContext&) const {
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const HugeData&, models::Batch,
                           models::ComputeContext&) const {
    return {};
  }
};

TEST(Job, RefusesMoreSamplesThanItCanDeal) {
  const auto outcome = train<HugeModel, HugeData>({}, {}, nullptr, endless_options());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "the data has 5000000000 samples; valid: up to 4294967295");
}

/// A model whose rows follow from the first sample of a batch, so the batch must not be empty.
struct RowsOfFirstSample : FaultyModel {
  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "table", .shape = {4, 2}, .row_sparse = true}, {.name = "bias"}};
  }
  [[nodiscard]] std::vector<models::TouchedRows> touched(const models::Table&,
                                                         models::Batch batch) const {
    if (batch.empty()) throw std::runtime_error{"an empty batch"};
    return {{0, {batch[0] % 4}}};
  }
};

TEST(TouchedRows, AreNotAskedForWithoutSamples) {
  TrainOptions job = endless_options();
  job.job.time.reset();
  job.job.steps = 6;
  job.batch = 1;
  const models::Table data = load("linear:d=5,n=4");  // 3 workers: two have no second sample
  const Outcome outcome = train<RowsOfFirstSample, models::Table>({}, data, nullptr, job).value();
  EXPECT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
}

TEST(Job, HasNoParametersIfAnOwnerWasLost) {
  TrainOptions job = endless_options();
  job.job.barrier = throwing_barrier();
  const Outcome outcome =
      train<FaultyModel, models::Table>({}, load("linear:d=5,n=60"), nullptr, job).value();
  EXPECT_TRUE(outcome.model.empty());
  EXPECT_TRUE(parameters_of(FaultyModel{}, job, outcome).empty());
}

TEST(Job, RefusesTestDataThatDoNotFit) {
  const models::Table data{2, 0, models::Table::Dense{{1, 2, 3, 4}}, {1, 2}};
  const models::Table test{1, 0, models::Table::Dense{{1, 2}}, {1, 2}};
  const auto model = models::Linear<float>::parse(Spec::parse("linear").value(), data).value();
  TrainOptions options;
  options.job.steps = 1;
  const auto outcome = train(model, data, &test, options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "test: linear was built for 2 features, but the data has 1");
}

}  // namespace
}  // namespace starling::actor
