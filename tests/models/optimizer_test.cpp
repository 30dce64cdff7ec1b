#include "starling/models/optimizer/optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "starling/base/random.hpp"

namespace starling::models {
namespace {

template <class T>
class Optimizers : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Optimizers, Precisions);

/// The expected result: one parameter w with the optimiser's state a and b, which step() updates by
/// the recurrences of the papers.
struct ReferenceParameter {
  double w, a = 0, b = 0;

  void update(const Optimizer& optimizer, double g, double scale, double l2, int t) {
    std::visit([&](const auto& any) { step(any, g + l2 * w, any.lr * scale, t); }, optimizer);
  }
  void step(const Sgd& sgd, double g, double lr, int) {
    a = sgd.momentum * a + g;
    w -= lr * (sgd.nesterov ? g + sgd.momentum * a : a);
  }
  void step(const Adagrad& adagrad, double g, double lr, int) {
    a += g * g;
    w -= lr * g / (std::sqrt(a) + adagrad.epsilon);
  }
  void step(const Adam& adam, double g, double lr, int t) {
    a = adam.beta1 * a + (1 - adam.beta1) * g;
    b = adam.beta2 * b + (1 - adam.beta2) * g * g;
    const double m = a / (1 - std::pow(adam.beta1, t));
    const double v = b / (1 - std::pow(adam.beta2, t));
    w -= lr * m / (std::sqrt(v) + adam.epsilon);
  }
};

const std::vector<Optimizer> optimizers{
    Sgd{.lr = 0.1},
    Sgd{.lr = 0.05, .momentum = 0.9},
    Sgd{.lr = 0.05, .momentum = 0.8, .nesterov = true},
    Adagrad{.lr = 0.2, .epsilon = 1e-6},
    Adam{.lr = 0.01},
    Adam{.lr = 0.02, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3},
};

TYPED_TEST(Optimizers, FollowTheirRecurrences) {
  using T = TypeParam;
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-12;
  for (const Optimizer& optimizer : optimizers) {
    for (const std::size_t n : {1U, 7U, 33U, 130U}) {
      Random random{n};
      std::vector<T> w(n), g(n), state(slot_count(optimizer) * n);
      std::vector<ReferenceParameter> expected;
      for (T& value : w) {
        value = static_cast<T>(random.real(-1, 1));
        expected.push_back({static_cast<double>(value)});
      }
      for (int t = 1; t <= 6; ++t) {
        const double scale = 1.0 / t;
        for (std::size_t i = 0; i < n; ++i) {
          g[i] = static_cast<T>(random.real(-1, 1));
          expected[i].update(optimizer, static_cast<double>(g[i]), scale, 0.01, t);
        }
        apply<T>(optimizer, w, g, state,
                 {.rate_scale = scale, .l2 = 0.01, .t = static_cast<std::uint64_t>(t)});
      }
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_NEAR(static_cast<double>(w[i]), expected[i].w, tolerance) << print(optimizer);
    }
  }
}

TYPED_TEST(Optimizers, UpdatingARangeInPartsEqualsUpdatingItAtOnce) {
  using T = TypeParam;
  for (const Optimizer& optimizer : optimizers) {
    constexpr std::size_t n = 50;
    Random random{1};
    std::vector<T> w(n), g(n), state(slot_count(optimizer) * n);
    for (std::size_t i = 0; i < n; ++i) {
      w[i] = static_cast<T>(random.normal());
      g[i] = static_cast<T>(random.normal());
    }
    auto w_by_parts = w;
    auto state_by_parts = state;
    for (std::uint64_t t = 1; t <= 3; ++t) {
      apply<T>(optimizer, w, g, state, {.t = t});
      for (const auto& [from, count] : {std::pair{0U, 13U}, {13U, 1U}, {14U, 36U}})
        apply<T>(optimizer, std::span{w_by_parts}.subspan(from, count),
                 std::span{g}.subspan(from, count),
                 std::span{state_by_parts}.subspan(state_by_parts.empty() ? 0 : from), n, {.t = t});
    }
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(w[i], w_by_parts[i], 1e-6) << print(optimizer);
    for (std::size_t i = 0; i < state.size(); ++i) EXPECT_NEAR(state[i], state_by_parts[i], 1e-6);
  }
}

TEST(Optimizer, FirstAdamStepHasTheSizeOfTheLearningRate) {
  std::vector<double> w{0, 0}, g{1e-3, -50}, state(4);
  apply<double>(Adam{.lr = 0.1, .epsilon = 1e-12}, w, g, state, {});
  EXPECT_NEAR(w[0], -0.1, 1e-8);
  EXPECT_NEAR(w[1], 0.1, 1e-8);
}

TEST(Optimizer, FirstAdamStepHasThisSizeAlsoWithBetasNearOne) {
  for (const Adam adam :
       {Adam{.lr = 0.1, .beta2 = 0.9999999}, Adam{.lr = 0.1, .beta1 = 0.9999999}}) {
    std::vector<float> w{0}, g{1}, state(2);
    apply<float>(adam, w, g, state, {});
    EXPECT_NEAR(w[0], -0.1F, 1e-4F) << print(adam);
  }
}

TEST(Optimizer, CountsItsStateForEachParameter) {
  EXPECT_EQ(slot_count(Sgd{}), 0U);
  EXPECT_EQ(slot_count(Sgd{.momentum = 0.9}), 1U);
  EXPECT_EQ(slot_count(Adagrad{}), 1U);
  EXPECT_EQ(slot_count(Adam{}), 2U);
  EXPECT_EQ(learning_rate(Adam{.lr = 0.5}), 0.5);
}

TEST(Optimizer, TooLittleStateEndsTheProgram) {
  std::vector<double> w(3), g(3), state(5);
  EXPECT_DEATH(apply<double>(Adam{}, w, g, state, {}), "broken invariant");
  state.resize(6);
  EXPECT_DEATH(apply<double>(Adam{}, w, g, state, {.t = 0}), "broken invariant");
}

TEST(Optimizer, PrintsWhatItReads) {
  for (const Optimizer& optimizer : optimizers)
    EXPECT_EQ(parse_optimizer(print(optimizer)).value(), optimizer) << print(optimizer);
  EXPECT_EQ(print(parse_optimizer("sgd:lr=0.1,momentum=0.9,nesterov").value()),
            "sgd:lr=0.1,momentum=0.9,nesterov");
  EXPECT_EQ(print(parse_optimizer("adam").value()), "adam:lr=0.001");
  EXPECT_EQ(print(parse_optimizer("adagrad:epsilon=0.001").value()),
            "adagrad:lr=0.01,epsilon=0.001");
}

TEST(Optimizer, EveryOptimizerIsTestedAndMovesParameters) {
  for_each_alternative<Optimizer>([]<class O>(const O& optimizer) {
    EXPECT_TRUE(std::ranges::any_of(optimizers, [](const Optimizer& one) {
      return std::holds_alternative<O>(one);
    })) << O::name;
    EXPECT_EQ(parse_optimizer(O::name).value(), Optimizer{optimizer});
    EXPECT_EQ(parse_optimizer(print(optimizer)).value(), Optimizer{optimizer});
    const std::string form{O::example};
    EXPECT_TRUE(parse_optimizer(form.substr(0, form.find('[')))) << form;
    std::vector<double> w{1}, g{1}, state(slot_count(optimizer));
    apply<double>(optimizer, w, g, state, {});
    EXPECT_LT(w[0], 1) << O::name;
  });
  EXPECT_EQ(examples_of<Optimizer>(),
            "sgd:lr=0.1[,momentum=0.9,nesterov] | adagrad:lr=0.01 | adam:lr=0.001");
}

TEST(Optimizer, RefusesInvalidTexts) {
  const auto message = [](const char* text) { return parse_optimizer(text).error().message; };
  EXPECT_EQ(message("agam"),
            "unknown optimizer 'agam'; did you mean 'adam'? valid: sgd, adagrad, adam");
  EXPECT_EQ(message("sgd:lr=-1"), "sgd: lr=-1 must be a number from 0 to 1000000");
  EXPECT_EQ(message("sgd:momentum=1"), "sgd: momentum=1 is 1 as a float; valid: 0 to 0.9999999");
  EXPECT_EQ(message("adam:beta2=0.99999999"),
            "adam: beta2=0.99999999 is 1 as a float; valid: 0 to 0.9999999");
  EXPECT_TRUE(parse_optimizer("adam:beta2=0.9999999"));
  EXPECT_EQ(message("sgd:nesterov"), "sgd: nesterov needs momentum above 0");
  EXPECT_EQ(message("sgd:moment=0.5"),
            "sgd: unknown option 'moment'; did you mean 'momentum'? valid: lr, momentum, nesterov");
  EXPECT_EQ(message("adam:beta1=2"), "adam: beta1=2 must be a number from 0 to 1");
  EXPECT_EQ(message("adam:epsilon=0"), "adam: epsilon=0 must be a number from 1e-30 to 1");
  EXPECT_EQ(message("adagrad:lr=fast"), "adagrad: lr=fast must be a number from 0 to 1000000");
  EXPECT_EQ(message(""), "optimizer: '' has no name; valid: NAME or NAME:OPTIONS");
  EXPECT_EQ(message("adam:lr=1,lr=2"), "optimizer: adam: 'lr' is given twice; valid: once");
}

}  // namespace
}  // namespace starling::models
