// Measures matrix products, gradients and updates on one thread.
//
//   cmake --preset bench && cmake --build build/bench --target models_benchmark
//   build/bench/tests/benchmarks/models/models_benchmark --benchmark_repetitions=5
//     --benchmark_report_aggregates_only=true
//
// product/... reports FLOP/s. perceptron/... is one gradient of 64 random rows; compare it with
// perceptron_products/..., which computes only the matrix products of that gradient. update/...
// reports the bytes that it reads and writes. On a busy machine compare the CPU column. `starling
// bench train` measures whole steps.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/kernels/gemm.hpp"
#include "starling/models/optimizer/optimizer.hpp"

namespace starling::models {
namespace {

using Floats = std::vector<float>;

/// Returns `n` normal random numbers.
Floats draw(std::size_t n) {
  Random random{n};
  Floats values(n);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

void product(benchmark::State& state, std::size_t m, std::size_t k, std::size_t n,
             bool is_transposed) {
  const Floats a = draw(m * k);
  const Floats b = draw(k * n);
  Floats c(m * n);
  MatrixView<const float> left{a.data(), m, k};
  if (is_transposed) left = MatrixView<const float>{a.data(), k, m}.transpose();
  for (auto _ : state) {
    gemm<float>(left, {b.data(), k, n}, 0.0F, {c.data(), m, n});
    benchmark::DoNotOptimize(c.data());
  }
  state.counters["FLOP/s"] = benchmark::Counter(2 * static_cast<double>(m * k * n),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(product, 512x512_by_512x512, 512, 512, 512, false);
BENCHMARK_CAPTURE(product, 64x784_by_784x512, 64, 784, 512, false);
BENCHMARK_CAPTURE(product, 64x512_by_512x10, 64, 512, 10, false);
BENCHMARK_CAPTURE(product, transposed_784x64_by_64x512, 784, 64, 512, true);

constexpr std::size_t batch_size = 64;

/// Computes only the matrix products of one gradient of a perceptron. `left` stands for the inputs
/// of every layer, and `right` for its outputs and the derivatives with respect to them.
void compute_products(const std::vector<std::size_t>& widths, Floats& w, Floats& g, Floats& left,
                      Floats& right) {
  float* weights = w.data();
  float* gradient = g.data();
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::size_t in = widths[l];
    const std::size_t out = widths[l + 1];
    const MatrixView<const float> x{left.data(), batch_size, in};
    const MatrixView<const float> dz{right.data(), batch_size, out};
    const MatrixView<const float> matrix{weights, in, out};
    gemm<float>(x.transpose(), dz, 1.0F, {gradient, in, out});
    if (l > 0) gemm<float>(dz, matrix.transpose(), 0.0F, {left.data(), batch_size, in});
    gemm<float>(x, matrix, 1.0F, {right.data(), batch_size, out});
    weights += (in + 1) * out;
    gradient += (in + 1) * out;
  }
}

/// Computes gradients of a perceptron over random rows of a table with 10,000 rows.
void perceptron(benchmark::State& state, const char* text) {
  Table table{784, 10, Table::Dense{draw(10000 * 784)}, Floats(10000, 3)};
  const auto model = std::get<Perceptron<float>>(parse_model<float>(text, table).value());
  Floats w(total_size(model.parameters()));
  Floats g(w.size());
  Random random{1};
  model.initialise(w, random);
  Arena arena;
  ComputeContext context{random, arena};
  std::vector<std::uint32_t> batch(batch_size);
  for (auto _ : state) {
    for (std::uint32_t& row : batch) row = static_cast<std::uint32_t>(random.below(table.size()));
    arena.reset();
    benchmark::DoNotOptimize(model.gradient(w, table, batch, g, context));
  }
}

void perceptron_products(benchmark::State& state, std::vector<std::size_t> widths) {
  Floats w = draw(784 * 1024);
  Floats g(w.size());
  Floats left = draw(batch_size * 1024);
  Floats right = draw(batch_size * 1024);
  for (auto _ : state) {
    compute_products(widths, w, g, left, right);
    benchmark::DoNotOptimize(g.data());
  }
}
BENCHMARK_CAPTURE(perceptron, mlp_784_128_10, "mlp:784-128-10")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(perceptron, mlp_784_128_10_tanh, "mlp:784-128-10,activation=tanh")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(perceptron_products, mlp_784_128_10, {784, 128, 10})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(perceptron, mlp_784_512_512_10, "mlp:784-512-512-10")
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(perceptron_products, mlp_784_512_512_10, {784, 512, 512, 10})
    ->Unit(benchmark::kMicrosecond);

/// Updates a range of 256 KiB; this reads or writes `arrays` arrays of that size.
void update(benchmark::State& state, const char* text, double arrays) {
  constexpr std::size_t size = 65536;
  const Optimizer optimizer = parse_optimizer(text).value();
  Floats w = draw(size);
  const Floats g = draw(size);
  Floats slot_values(slot_count(optimizer) * size);
  std::uint64_t t = 0;
  for (auto _ : state) {
    apply<float>(optimizer, w, g, slot_values, {.rate_scale = 1e-3, .t = ++t});
    benchmark::DoNotOptimize(w.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(arrays * 4 * size) * state.iterations());
}
BENCHMARK_CAPTURE(update, sgd, "sgd", 3)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(update, momentum, "sgd:momentum=0.9", 5)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(update, adagrad, "adagrad", 5)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(update, adam, "adam", 7)->Unit(benchmark::kMicrosecond);

/// Copies a range of 256 KiB, as a comparison for the bytes per second of update().
void copy(benchmark::State& state) {
  const Floats from = draw(65536);
  Floats to(from.size());
  for (auto _ : state) {
    std::copy(from.begin(), from.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(2 * 4 * from.size()) * state.iterations());
}
BENCHMARK(copy)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace starling::models
