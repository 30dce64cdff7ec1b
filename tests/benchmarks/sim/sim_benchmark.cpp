// Measures the time per update and the memory of the step-level simulator, for 10^3 to 10^6
// workers.
//
//   cmake --preset bench && cmake --build build/bench --target sim_benchmark
//   build/bench/tests/benchmarks/sim/sim_benchmark --benchmark_filter=steps
//   build/bench/tests/benchmarks/sim/sim_benchmark full 100000 40 bsp ssp:s=4 pbsp:beta=10
//     pssp:s=4,beta=10 asp
//
// steps/BARRIER/WORKERS simulates up to 8 million steps, whose durations are exponentially
// distributed with a mean of 100 ms: 40 s of virtual time for up to 20,000 workers, less for more,
// and 0.8 s for 10^6. It reports updates per second and the time per update, in processor time.
// `full WORKERS SECONDS BARRIER...` simulates one seed of each barrier and prints a line for each,
// with the peak memory of the process so far.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/sim/steps/steps.hpp"

namespace starling::sim {
namespace {

void steps(benchmark::State& state, const char* barrier) {
  StepOptions options;
  options.workers = static_cast<std::size_t>(state.range(0));
  options.barrier = barrier::parse(barrier).value();
  // 40 s of virtual time for few workers, at least 0.8 s for many.
  const auto steps_per_worker = std::clamp<std::int64_t>(8'000'000 / state.range(0), 8, 400);
  options.horizon = steps_per_worker * std::chrono::milliseconds{100};
  std::uint64_t updates = 0;
  for (auto _ : state) {
    updates += simulate(options).updates;
    ++options.seed;
  }
  using benchmark::Counter;
  const auto total = static_cast<double>(updates);
  state.counters["updates/s"] = Counter(total, Counter::kIsRate);
  state.counters["time/update"] = Counter(total, Counter::kIsRate | Counter::kInvert);
}
#define STARLING_STEPS(name, barrier)     \
  BENCHMARK_CAPTURE(steps, name, barrier) \
      ->RangeMultiplier(10)               \
      ->Range(1'000, 1'000'000)           \
      ->Unit(benchmark::kMillisecond)
STARLING_STEPS(bsp, "bsp");
STARLING_STEPS(ssp, "ssp:s=4");
STARLING_STEPS(pbsp, "pbsp:beta=10");
STARLING_STEPS(pssp, "pssp:s=4,beta=10");
STARLING_STEPS(asp, "asp");

/// Runs `sim_benchmark full` and returns the exit code.
int run_full(int argc, char** argv) {
  const auto workers = argc > 4 ? parse_count(argv[2]) : Error{"arguments are missing"};
  const auto seconds = argc > 4 ? parse_number(argv[3]) : Error{"arguments are missing"};
  for (int i = 4; i < argc && workers && seconds; ++i) {
    const auto barrier = barrier::parse(argv[i]);
    if (!barrier) return std::fprintf(stderr, "%s\n", barrier.error().message.c_str()), 2;
    StepOptions options;
    options.workers = *workers;
    options.horizon = to_duration(*seconds * 1e9);
    options.barrier = *barrier;
    if (auto valid = check(options); !valid)
      return std::fprintf(stderr, "%s\n", valid.error().message.c_str()), 2;
    const auto started_at = std::chrono::steady_clock::now();
    const std::clock_t clock_start = std::clock();
    const auto result = simulate(options);
    const double processor_s = static_cast<double>(std::clock() - clock_start) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall_time = std::chrono::steady_clock::now() - started_at;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%-18s %9.2f s, %9.2f s of processor, %11lu updates, %9.0f a second, %7.1f MB\n",
                argv[i], wall_time.count(), processor_s, static_cast<unsigned long>(result.updates),
                static_cast<double>(result.updates) / wall_time.count(),
                static_cast<double>(usage.ru_maxrss) / 1024);
    std::fflush(stdout);
  }
  if (workers && seconds) return 0;
  std::fprintf(stderr, "usage: sim_benchmark full WORKERS SECONDS BARRIER...\n");
  return 2;
}

}  // namespace
}  // namespace starling::sim

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view{argv[1]} == "full") return starling::sim::run_full(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
