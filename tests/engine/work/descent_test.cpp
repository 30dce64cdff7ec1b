#include "starling/engine/work/descent.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace starling::core {
namespace {

constexpr std::size_t parameters = 6;

/// Two parameters in two ranges of three elements; the last element of the first range belongs to
/// the second parameter.
Layout make_two_ranges(bool second_is_trained = true) {
  Layout layout;
  layout.parameters = {{.name = "a", .shape = {2}}, {.name = "b", .shape = {4}}};
  layout.parameters[1].trained = second_is_trained;
  layout.offsets = {0, 2};
  layout.ranges = {{0, 3, 0, {{0, 0, 0, 2}, {1, 2, 0, 1}}}, {3, 3, 0, {{1, 0, 1, 3}}}};
  layout.size = parameters;
  return layout;
}

template <class T>
std::vector<Value> values_of(const std::vector<T>& w) {
  const auto buffer = Buffer::copy_of<T>(std::span{w});
  return {{0, 0, {buffer, 0, 3, nullptr}}, {1, 0, {buffer, 3, 3, nullptr}}};
}

template <class T>
std::vector<Update::Part> parts_of(const std::vector<T>& g) {
  const auto buffer = Buffer::copy_of<T>(std::span{g});
  return {{0, {buffer, 0, 3, nullptr}}, {1, {buffer, 3, 3, nullptr}}};
}

/// A loss of half the sum of curvature times square.
template <class T>
struct Quadratic {
  std::vector<T> curvature{1, 2, 3, 4, 5, 6};

  [[nodiscard]] std::vector<T> gradient(const std::vector<T>& w) const {
    std::vector<T> g(w);
    for (std::size_t i = 0; i < g.size(); ++i) g[i] *= curvature[i];
    return g;
  }
  [[nodiscard]] double loss(const std::vector<T>& w, std::size_t count = parameters) const {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += curvature[i] * w[i] * w[i] / 2;
    return sum;
  }
};

template <class T>
class DescentOf : public testing::Test {
 protected:
  [[nodiscard]] std::optional<barrier::Descent> descent(const Layout& layout) const {
    const auto end = parts_of(quadratic_.gradient(to_));
    return descent_from({values_of(from_), parts_of(quadratic_.gradient(from_))}, values_of(to_),
                        end, layout);
  }

  Quadratic<T> quadratic_;
  std::vector<T> from_{1, 1, -1, 2, 0, 1};
  std::vector<T> to_{0.5, -0.25, 0, 1, 1, 0.5};
};

using ElementTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(DescentOf, ElementTypes);

TYPED_TEST(DescentOf, AQuadraticHasItsFallAsMean) {
  const auto descent = this->descent(make_two_ranges());
  ASSERT_TRUE(descent);
  // The products of (from - to) with both gradients, by hand.
  EXPECT_DOUBLE_EQ(descent->at_start, 0.5 + 2.5 + 3 + 8 + 0 + 3);
  EXPECT_DOUBLE_EQ(descent->at_end, 0.25 - 0.625 + 0 + 4 - 5 + 1.5);
  EXPECT_DOUBLE_EQ((descent->at_start + descent->at_end) / 2,
                   this->quadratic_.loss(this->from_) - this->quadratic_.loss(this->to_));
}

TYPED_TEST(DescentOf, TrainedParametersOnly) {
  const auto descent = this->descent(make_two_ranges(false));
  ASSERT_TRUE(descent);
  EXPECT_DOUBLE_EQ((descent->at_start + descent->at_end) / 2,
                   this->quadratic_.loss(this->from_, 2) - this->quadratic_.loss(this->to_, 2));
}

TEST(Descent, IsThatOfTheRangesThatBothStepsHaveRead) {
  const Quadratic<double> quadratic;
  const std::vector<double> from{1, 1, 1, 2, 2, 2};
  const std::vector<double> to{0, 0, 0, 1, 1, 1};
  FormerStep former{values_of(from), parts_of(quadratic.gradient(from))};
  std::vector<Update::Part> update = parts_of(quadratic.gradient(to));
  former.update.erase(former.update.begin());
  EXPECT_DOUBLE_EQ(descent_from(former, values_of(to), update, make_two_ranges())->at_start,
                   2 * (4 + 5 + 6));
  // Rows of a range are not counted.
  update[1].values.rows = std::make_shared<const std::vector<std::uint32_t>>(1, 0);
  EXPECT_EQ(descent_from(former, values_of(to), update, make_two_ranges()), std::nullopt);
}

}  // namespace
}  // namespace starling::core
