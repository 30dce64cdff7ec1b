#include "starling/tools/sim/linear_learner.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::program {
namespace {

using namespace std::chrono_literals;

const LinearProblem& problem() {
  static const LinearProblem problem = LinearProblem::make(20, 2000, 1).value();
  return problem;
}

// Compares two workers, of which one takes its step after the other, with plain SGD, which takes
// the same rows in the same order.
TEST(LinearLearner, OfWorkersInTurnIsStochasticGradientDescent) {
  const LearnerOptions options{.workers = 2, .rate = 0.02, .batch = 2, .seed = 3, .every = 1s};
  LinearLearner learner{problem(), options};
  const auto& table = problem().table();
  std::vector<double> w(20, 0.0);
  double squares = 0;
  for (const float truth : table.true_weights) squares += truth * truth;
  const double initial_distance = std::sqrt(squares);
  for (sim::Step step = 1; step <= 300; ++step)
    for (const sim::MemberId worker : {0U, 1U}) {
      learner.on_begin(worker, step, std::chrono::seconds{step - 1});
      learner.on_end(worker, step, std::chrono::seconds{step - 1});
      // The stream from which a worker draws its batches; 0x6261746368 is `batch_stream` of the
      // learner.
      auto random = Random::stream(3, std::uint64_t{0x6261746368}, worker, step);
      std::vector<double> gradient(w.size());
      for (int sample = 0; sample < 2; ++sample) {
        const auto row = random.below(table.size());
        const auto x = table.dense_row(row);
        double residual = -table.label(row);
        for (std::size_t i = 0; i < w.size(); ++i) residual += w[i] * x[i];
        for (std::size_t i = 0; i < w.size(); ++i) gradient[i] += residual * x[i];
      }
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.02 / 4 * gradient[i];
    }
  learner.on_begin(0, 301, 301s);  // measures the error up to now
  squares = 0;
  for (std::size_t i = 0; i < w.size(); ++i) squares += std::pow(w[i] - table.true_weights[i], 2);
  EXPECT_NEAR(learner.error(), std::sqrt(squares) / initial_distance, 1e-4);
  EXPECT_LT(learner.error(), 0.1);
}

TEST(LinearLearner, MeasuresTheErrorAtTheEnd) {
  LinearLearner learner{problem(),
                        {.workers = 1, .rate = 0.02, .batch = 1, .seed = 3, .every = 1h}};
  for (sim::Step step = 1; step <= 100; ++step) {
    learner.on_begin(0, step, std::chrono::seconds{step - 1});
    learner.on_end(0, step, std::chrono::seconds{step});
  }
  EXPECT_EQ(learner.error(), 1);
  learner.finish(100s);
  EXPECT_LT(learner.error(), 0.9);
  EXPECT_EQ(learner.errors().back().x, 100);
}

TEST(LinearLearner, CountsTheUpdatesOfTheLastMoment) {
  LinearLearner learner{problem(), {.workers = 2, .rate = 0.02, .batch = 1, .every = 100ms}};
  for (const sim::MemberId worker : {0U, 1U}) learner.on_begin(worker, 1, 0s);
  for (const sim::MemberId worker : {0U, 1U}) learner.on_end(worker, 1, 100ms);
  EXPECT_EQ(learner.error(), 1) << "measured before the first update";
  learner.finish(100ms);
  EXPECT_NE(learner.error(), 1);
  EXPECT_EQ(learner.errors().size(), 2U);
}

// A worker reads the model when its step begins. Other workers may change the model before the step
// ends, but the gradient is that of the model that was read.
TEST(LinearLearner, AppliesTheGradientOfTheModelThatWasRead) {
  const LearnerOptions options{.workers = 2, .rate = 0.5, .batch = 4, .seed = 1, .every = 1s};
  LinearLearner concurrent{problem(), options};
  for (sim::MemberId worker : {0U, 1U}) concurrent.on_begin(worker, 1, 0s);
  for (sim::MemberId worker : {0U, 1U}) concurrent.on_end(worker, 1, 0s);
  concurrent.on_begin(0, 2, 1s);
  LinearLearner sequential{problem(), options};
  for (sim::MemberId worker : {0U, 1U}) {
    sequential.on_begin(worker, 1, 0s);
    sequential.on_end(worker, 1, 0s);
  }
  sequential.on_begin(0, 2, 1s);
  EXPECT_NE(concurrent.error(), sequential.error())
      << "the second worker read what the first had written";
}

TEST(LinearLearner, MeasuresTheErrorAtEqualIntervals) {
  const LearnerOptions options{.workers = 1, .rate = 0.1, .batch = 1, .seed = 1, .every = 100ms};
  LinearLearner learner{problem(), options};
  learner.on_begin(0, 1, 0s);
  learner.on_end(0, 1, 250ms);
  learner.on_begin(0, 2, 250ms);
  learner.on_end(0, 2, 300ms);
  const auto& errors = learner.errors();
  ASSERT_EQ(errors.size(), 4U);
  for (std::size_t i = 0; i < errors.size(); ++i)
    EXPECT_DOUBLE_EQ(errors[i].x, 0.1 * static_cast<double>(i));
  EXPECT_EQ(errors[2].y, 1) << "nothing was learned before 0.25 s";
  EXPECT_NE(errors[3].y, 1) << "at 0.3 s the first update counts";
}

TEST(TimeTo, IsTheTimeOfTheFirstErrorAtMostTheLevel) {
  const std::vector<PlotPoint> errors{{0, 1}, {1, 0.4}, {2, 0.1}, {3, 0.3}};
  EXPECT_EQ(time_to(errors, 0.4), 1);
  EXPECT_EQ(time_to(errors, 0.2), 2);
  EXPECT_EQ(time_to(errors, 0.05), std::nullopt);
}

}  // namespace
}  // namespace starling::program
