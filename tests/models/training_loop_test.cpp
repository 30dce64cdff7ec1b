/// Checks training on one thread: a step applies the optimiser to the gradient, a buffer (an
/// untrained parameter) gets its gradient added, and two loops with the same seed compute the same.
#include "starling/models/training_loop.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "starling/models/built_in/built_in_models.hpp"
#include "tests/models/model_data.hpp"

namespace starling::models {
namespace {

/// A model with two long parameters, each of several of the loop's blocks, and a buffer between
/// them. Its gradient is 1 for all elements of the first parameter, 2 for the buffer, 3 for the
/// last parameter.
struct ConstantGradient {
  using Scalar = double;
  static constexpr std::size_t width = 5000;
  /// Set to true if gradient() is called with a g that is not zero.
  bool* g_was_dirty = nullptr;

  [[nodiscard]] std::vector<Parameter> parameters() const {
    return {{.name = "first", .shape = {width}},
            {.name = "buffer", .shape = {3}, .trained = false},
            {.name = "last", .shape = {width}}};
  }
  void initialise(std::span<double> w, Random&) const { std::ranges::fill(w, 10.0); }
  double gradient(std::span<const double>, const Table&, Batch, std::span<double> g,
                  ComputeContext&) const {
    for (const double value : g)
      if (value != 0) *g_was_dirty = true;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += i < width ? 1 : i < width + 3 ? 2 : 3;
    return 0.5;
  }
  [[nodiscard]] Metrics evaluate(std::span<const double>, const Table&, Batch,
                                 ComputeContext&) const {
    return {};
  }
};

TEST(TrainingLoop, AppliesTheGradientAndAddsTheChangeToBuffers) {
  const Table data = dense_table(8, 1, 0);
  bool g_was_dirty = false;
  TrainingLoop<ConstantGradient, Table> loop{
      ConstantGradient{&g_was_dirty}, data, {.optimizer = Sgd{.lr = 0.5}, .batch = 4}};
  EXPECT_EQ(loop.step(), 0.5);
  loop.step();
  const auto w = loop.parameters();
  for (std::size_t i = 0; i < w.size(); ++i)
    ASSERT_EQ(w[i], i < 5000 ? 9.0 : i < 5003 ? 14.0 : 7.0) << i;
  EXPECT_FALSE(g_was_dirty) << "the gradient was not cleared";
  EXPECT_EQ(loop.steps(), 2U);
}

TEST(TrainingLoop, KeepsTheStateOfItsOptimiser) {
  const Table data = dense_table(8, 1, 0);
  bool g_was_dirty = false;
  TrainingLoop<ConstantGradient, Table> loop{
      ConstantGradient{&g_was_dirty},
      data,
      {.optimizer = Sgd{.lr = 1, .momentum = 0.5}, .batch = 4}};
  for (int i = 0; i < 3; ++i) loop.step();
  // The velocity is g, 1.5 g, then 1.75 g; their sum is 4.25 g.
  EXPECT_EQ(loop.parameters().front(), 10 - 4.25);
  EXPECT_EQ(loop.parameters().back(), 10 - 3 * 4.25);
  EXPECT_EQ(loop.parameters()[5000], 16.0);
}

TEST(TrainingLoop, RepeatsItselfAndLearns) {
  const Table data = dense_table(200, 9, 2);
  const auto model = std::get<Perceptron<float>>(parse_model<float>("mlp:9-64-2", data).value());
  const LoopOptions options{.optimizer = Adam{.lr = 0.01}, .batch = 50, .seed = 3};
  TrainingLoop one{model, data, options};
  TrainingLoop two{model, data, options};
  const double first = one.step();
  double last = first;
  for (int i = 0; i < 400; ++i) last = one.step();
  two.step();
  for (int i = 0; i < 400; ++i) two.step();
  EXPECT_TRUE(std::ranges::equal(one.parameters(), two.parameters()));
  EXPECT_LT(last, first / 4) << "400 steps on 200 samples did not learn them";
}

/// The second call of gradient() throws after it has added to g.
struct FailsOnce : ConstantGradient {
  int* calls = nullptr;
  double gradient(std::span<const double> w, const Table& data, Batch batch, std::span<double> g,
                  ComputeContext& context) const {
    const double loss = ConstantGradient::gradient(w, data, batch, g, context);
    if (++*calls == 2) throw std::runtime_error{"second call"};
    return loss;
  }
};

TEST(TrainingLoop, RepeatsAStepWhoseModelThrew) {
  const Table data = dense_table(8, 1, 0);
  bool g_was_dirty = false;
  int calls = 0;
  FailsOnce model;
  model.g_was_dirty = &g_was_dirty;
  model.calls = &calls;
  TrainingLoop<FailsOnce, Table> loop{model, data, {.optimizer = Sgd{.lr = 1}, .batch = 4}};
  loop.step();
  EXPECT_THROW(loop.step(), std::runtime_error);
  EXPECT_EQ(loop.steps(), 1U);
  EXPECT_EQ(loop.parameters().front(), 9);
  loop.step();
  EXPECT_EQ(loop.steps(), 2U);
  EXPECT_EQ(loop.parameters().front(), 8);
  EXPECT_FALSE(g_was_dirty);
}

}  // namespace
}  // namespace starling::models
