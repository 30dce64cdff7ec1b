// Checks both implementations of convolution, oneDNN in float and matrix products in double,
// against the definition.
#include "starling/models/kernels/convolution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "starling/base/random.hpp"

namespace starling::models {
namespace {

struct ConvolutionCase {
  std::string name;
  /// The number of images.
  std::size_t n;
  ConvolutionShape shape;
};

void PrintTo(const ConvolutionCase& given, std::ostream* out) { *out << given.name; }

ConvolutionShape shape_of(std::size_t height, std::size_t width, std::size_t channels,
                          std::size_t outputs, std::size_t kernel, std::size_t stride,
                          std::size_t padding) {
  return {height, width, channels, outputs, kernel, stride, padding};
}

const std::vector<ConvolutionCase> convolution_cases{
    {"OnePixel", 1, shape_of(1, 1, 1, 1, 1, 1, 0)},
    {"LeNetFirst", 4, shape_of(28, 28, 1, 6, 5, 1, 2)},
    {"LeNetSecond", 4, shape_of(14, 14, 6, 16, 5, 1, 0)},
    {"Wide", 3, shape_of(8, 8, 16, 32, 3, 1, 1)},
    {"Odd", 2, shape_of(7, 9, 5, 17, 3, 2, 1)},
    {"Projection", 2, shape_of(8, 6, 16, 3, 1, 2, 0)},
    {"MorePaddingThanImage", 2, shape_of(2, 3, 2, 3, 4, 1, 3)},
    {"StrideBeyondTheKernel", 2, shape_of(9, 9, 3, 4, 2, 4, 0)},
    {"WholeImage", 3, shape_of(5, 4, 3, 7, 4, 3, 0)},
};

/// Random images, weights, bias and derivatives with respect to the output.
template <class T>
struct Tensors {
  explicit Tensors(const ConvolutionCase& given)
      : x(given.n * given.shape.input_size()),
        w(given.shape.window() * given.shape.outputs),
        b(given.shape.outputs),
        dy(given.n * given.shape.output_size()) {
    Random random{7};
    for (auto* tensor : {&x, &w, &b, &dy})
      for (T& value : *tensor) value = static_cast<T>(random.normal());
  }
  std::vector<T> x, w, b, dy;
};

/// Calls visit(output, input, weight, output channel) with the indices of every product that the
/// definition of the convolution sums.
template <class Visit>
void for_each_product(std::size_t n, const ConvolutionShape& s, Visit visit) {
  // Returns the row or column of the input that output `index` multiplies by weight `k`.
  const auto input_index = [&](std::size_t index, std::size_t k) {
    return static_cast<long>(index * s.stride + k) - static_cast<long>(s.padding);
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t p = 0; p < s.out_height(); ++p)
      for (std::size_t q = 0; q < s.out_width(); ++q)
        for (std::size_t u = 0; u < s.kernel; ++u)
          for (std::size_t v = 0; v < s.kernel; ++v) {
            const long r = input_index(p, u);
            const long t = input_index(q, v);
            if (r < 0 || t < 0 || r >= static_cast<long>(s.height) ||
                t >= static_cast<long>(s.width))
              continue;
            for (std::size_t c = 0; c < s.channels; ++c)
              for (std::size_t o = 0; o < s.outputs; ++o)
                visit(((i * s.out_height() + p) * s.out_width() + q) * s.outputs + o,
                      ((i * s.height + static_cast<std::size_t>(r)) * s.width +
                       static_cast<std::size_t>(t)) *
                              s.channels +
                          c,
                      ((u * s.kernel + v) * s.channels + c) * s.outputs + o, o);
          }
}

template <class T>
void expect_near(const std::vector<T>& found, const std::vector<double>& wanted, const char* what) {
  ASSERT_EQ(found.size(), wanted.size());
  const double tolerance = std::is_same_v<T, float> ? 2e-4 : 1e-11;
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(static_cast<double>(found[i]), wanted[i], tolerance * (1 + std::abs(wanted[i])))
        << what << " " << i;
}

/// Compares the forward pass and both backward passes with the definition. The old values show that
/// backward_weights() adds to dw and db, and that the others overwrite y and dx.
template <class T>
void expect_definition(const ConvolutionCase& given) {
  const auto& [name, n, shape] = given;
  const Tensors<T> t{given};
  const Convolution<T> convolution{shape};
  Arena arena;

  std::vector<double> wanted(t.dy.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<double>(t.b[i % shape.outputs]);
  for_each_product(n, shape, [&](std::size_t y, std::size_t x, std::size_t w, std::size_t) {
    wanted[y] += static_cast<double>(t.x[x]) * static_cast<double>(t.w[w]);
  });
  std::vector<T> y(t.dy.size(), T{99});
  convolution.forward(n, t.x, t.w, t.b, y, arena);
  expect_near(y, wanted, "y");
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] -= static_cast<double>(t.b[i % shape.outputs]);
  convolution.forward(n, t.x, t.w, {}, y, arena);
  expect_near(y, wanted, "y without bias");

  std::vector<double> dw(t.w.size(), 2);
  std::vector<double> db(t.b.size(), 3);
  std::vector<double> dx(t.x.size());
  for_each_product(n, shape, [&](std::size_t o, std::size_t x, std::size_t w, std::size_t) {
    dw[w] += static_cast<double>(t.x[x]) * static_cast<double>(t.dy[o]);
    dx[x] += static_cast<double>(t.w[w]) * static_cast<double>(t.dy[o]);
  });
  for (std::size_t i = 0; i < t.dy.size(); ++i)
    db[i % shape.outputs] += static_cast<double>(t.dy[i]);
  std::vector<T> found_w(t.w.size(), T{2});
  std::vector<T> found_b(t.b.size(), T{3});
  std::vector<T> found_x(t.x.size(), T{99});
  convolution.backward_weights(n, t.x, t.dy, found_w, found_b, arena);
  convolution.backward_input(n, t.dy, t.w, found_x, arena);
  expect_near(found_w, dw, "dw");
  expect_near(found_b, db, "db");
  expect_near(found_x, dx, "dx");
}

class Convolutions : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(Convolutions, FloatAgreesWithTheDefinition) { expect_definition<float>(GetParam()); }
TEST_P(Convolutions, DoubleAgreesWithTheDefinition) { expect_definition<double>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, Convolutions, testing::ValuesIn(convolution_cases),
                         [](const auto& given) { return given.param.name; });

TEST(ConvolutionThreads, ComputeOnASharedConvolutionWhatOneThreadComputesAlone) {
  const ConvolutionCase given{"", 8, shape_of(14, 14, 6, 16, 5, 1, 0)};
  const Tensors<float> t{given};
  const Convolution<float> convolution{given.shape};
  std::vector<std::vector<float>> outputs(4, std::vector<float>(t.dy.size()));
  std::vector<std::thread> threads;
  threads.reserve(outputs.size());
  for (auto& y : outputs)
    threads.emplace_back([&] {
      Arena arena;
      for (int i = 0; i < 20; ++i) {
        arena.reset();
        // The size alternates, so that the threads need primitives for two batch sizes.
        const std::size_t n = i % 2 == 0 ? 3 : given.n;
        convolution.forward(n, std::span{t.x}.first(n * given.shape.input_size()), t.w, t.b,
                            std::span{y}.first(n * given.shape.output_size()), arena);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<float> alone(t.dy.size());
  Arena arena;
  Convolution<float>{given.shape}.forward(given.n, t.x, t.w, t.b, alone, arena);
  for (const auto& y : outputs) EXPECT_EQ(y, alone);
}

}  // namespace
}  // namespace starling::models
