/// Measures whether a chain of narrow operations is one loop. Run it alone on an idle machine:
///
///   build/bench/tests/benchmarks/flow/flow_benchmark --benchmark_repetitions=5
///     --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
///
/// ten_maps: the sum of ten maps of 2^20 numbers in a vector, with one thread and one part.
/// ten_maps_by_hand: the same as one loop.
/// ten_maps_erased: the same, with the chain hidden behind Set<T> after the fifth map.
/// generated_maps, generated_maps_by_hand: the first two for 10^8 numbers that are generated.
#include <benchmark/benchmark.h>

#include <functional>
#include <numeric>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"

namespace starling::benchmarks {
namespace {

constexpr std::size_t size = std::size_t{1} << 20U;

std::vector<std::uint64_t> numbers() {
  std::vector<std::uint64_t> values(size);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

/// One operation that the compiler cannot merge with the next.
constexpr std::uint64_t step(std::uint64_t x) { return (x ^ (x >> 7U)) + 3; }

template <class S>
auto five_maps(const S& set) {
  const auto f = [](std::uint64_t x) { return step(x); };
  return set.map(f).map(f).map(f).map(f).map(f);
}

auto source() {
  return flow::MapReduce::make({.threads = 1, .parts = 1}).value().collection(numbers());
}

template <class S>
void measure_sum(benchmark::State& state, const S& set) {
  for (auto _ : state) {
    const auto sum = set.fold(std::uint64_t{0}, std::plus<>{}, std::plus<>{});
    benchmark::DoNotOptimize(sum.value());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

void ten_maps(benchmark::State& state) { measure_sum(state, five_maps(five_maps(source()))); }
BENCHMARK(ten_maps);

void ten_maps_erased(benchmark::State& state) {
  const flow::Set<std::uint64_t> half = five_maps(source());
  measure_sum(state, five_maps(half));
}
BENCHMARK(ten_maps_erased);

void ten_maps_by_hand(benchmark::State& state) {
  const std::vector<std::uint64_t> values = numbers();
  for (auto _ : state) {
    std::uint64_t sum = 0;
    for (std::uint64_t x : values) {
      for (int i = 0; i < 10; ++i) x = step(x);
      sum += x;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}
BENCHMARK(ten_maps_by_hand);

void generated_maps(benchmark::State& state) {
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const auto numbers = flow::MapReduce::make({.threads = 1, .parts = 1})
                           .value()
                           .generate(count, [](std::uint64_t i) { return i; });
  const auto maps = five_maps(five_maps(numbers));
  for (auto _ : state) {
    const auto sum = maps.fold(std::uint64_t{0}, std::plus<>{}, std::plus<>{});
    benchmark::DoNotOptimize(sum.value());
  }
}
BENCHMARK(generated_maps)->Arg(100'000'000)->Unit(benchmark::kSecond)->UseRealTime();

void generated_maps_by_hand(benchmark::State& state) {
  auto count = static_cast<std::uint64_t>(state.range(0));
  benchmark::DoNotOptimize(count);
  for (auto _ : state) {
    std::uint64_t sum = 0;
    for (std::uint64_t number = 0; number < count; ++number) {
      std::uint64_t x = number;
      for (int i = 0; i < 10; ++i) x = step(x);
      sum += x;
    }
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(generated_maps_by_hand)->Arg(100'000'000)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
}  // namespace starling::benchmarks

BENCHMARK_MAIN();
