/// Measures the cost of the engine. Run it alone on an idle machine:
///
///   build/bench/tests/benchmarks/actor/live_benchmark --benchmark_repetitions=5
///     --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
///
/// overhead: the wall time divided by the steps of all workers. The model has 100,000 parameters,
/// and its gradient computes nothing. traced: the same jobs, and each records its workers'
/// intervals for --trace.
///
/// step_query: the time to ask a worker for its step while every worker computes a gradient that
/// takes 2 s; median and 99th percentile.
///
/// perceptron: one worker's whole training loop with batches of 64 rows; compare with
/// tools/compare/torch_loop.py.
///
/// ten_thousand_workers: 20 steps of each worker with the linear model, d = 1000.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <future>
#include <thread>

#include "starling/actor/interfaces.hpp"
#include "starling/actor/job/timeline.hpp"
#include "starling/actor/train/train.hpp"
#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/data/load.hpp"
#include "tests/benchmarks/actor/idle_model.hpp"

namespace starling::benchmarks {
namespace {

using actor::Outcome;
using actor::TrainOptions;

TrainOptions options_for(const char* mode, const char* barrier, std::size_t workers) {
  TrainOptions options;
  options.job.mode = core::parse_mode(mode).value();
  options.job.barrier = barrier::parse(barrier).value();
  options.job.workers = workers;
  options.job.evaluate_train = false;
  return options;
}

/// Returns the duration of the job.
double seconds(const Outcome& outcome) {
  return std::chrono::duration<double>(outcome.last.elapsed).count();
}

void report_steps(benchmark::State& state, const Outcome& outcome) {
  const auto steps = static_cast<double>(outcome.last.updates);
  state.SetIterationTime(seconds(outcome));
  state.counters["us_per_step"] = 1e6 * seconds(outcome) / steps;
  state.counters["steps_per_s"] = steps / seconds(outcome);
}

void run_idle_job(benchmark::State& state, const char* mode, const char* barrier, bool is_traced) {
  TrainOptions options = options_for(mode, barrier, 4);
  options.batch = 1;
  options.job.steps = 4000;
  for (auto _ : state) {
    actor::Timeline timeline{options.job.workers};
    if (is_traced) options.job.timeline = &timeline;
    report_steps(state,
                 actor::train(IdleModel{100'000}, EmptyData{1'000'000}, nullptr, options).value());
    for (const actor::WorkerTimeline& worker : timeline.workers())
      state.counters["intervals"] += static_cast<double>(worker.intervals().size());
  }
}

void overhead(benchmark::State& state, const char* mode, const char* barrier) {
  run_idle_job(state, mode, barrier, false);
}
BENCHMARK_CAPTURE(overhead, peer_pssp_s4_beta2, "peer", "pssp:s=4,beta=2")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(overhead, hybrid_pssp_s4_beta2, "hybrid", "pssp:s=4,beta=2")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(overhead, central_bsp, "central", "bsp")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(overhead, central_asp, "central", "asp")->UseManualTime()->Iterations(1);

void traced(benchmark::State& state, const char* mode, const char* barrier) {
  run_idle_job(state, mode, barrier, true);
}
BENCHMARK_CAPTURE(traced, peer_pssp_s4_beta2, "peer", "pssp:s=4,beta=2")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(traced, central_asp, "central", "asp")->UseManualTime()->Iterations(1);

void step_query(benchmark::State& state) {
  constexpr std::size_t workers = 4;
  for (auto _ : state) {
    TrainOptions options = options_for("peer", "asp", workers);
    options.batch = 1;
    options.job.compute_threads = workers;
    std::stop_source stop;
    options.job.stop = stop.get_token();
    options.job.time = std::chrono::seconds{4};
    std::promise<std::pair<actor::JobActorsPtr, caf::actor_system*>> started;
    options.job.on_start = [&](const actor::JobActorsPtr& actors, caf::actor_system& system) {
      started.set_value({actors, &system});
    };
    std::thread job_thread{[&] {
      (void)actor::train(IdleModel{1000, std::chrono::seconds{2}}, EmptyData{1000}, nullptr,
                         options)
          .value();
    }};
    std::vector<double> latencies_us;
    // Uses a separate thread, because CAF keeps the system's logger, and with it the job, until
    // every thread that has held a scoped_actor ends.
    std::thread querying_thread{[&] {
      auto [actors, system] = started.get_future().get();
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
      caf::scoped_actor self{*system};
      for (std::size_t i = 0; i < 2000; ++i) {
        const auto started_at = std::chrono::steady_clock::now();
        self->request(actors->workers[i % workers], std::chrono::seconds{1}, actor::step_atom_v)
            .receive([](core::Step) {}, [](const caf::error&) { std::abort(); });
        latencies_us.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - started_at)
                .count());
        std::this_thread::sleep_for(std::chrono::microseconds{200});
      }
    }};
    querying_thread.join();
    stop.request_stop();
    job_thread.join();
    std::ranges::sort(latencies_us);
    state.counters["median_us"] = latencies_us[latencies_us.size() / 2];
    state.counters["p99_us"] = latencies_us[latencies_us.size() * 99 / 100];
    state.SetIterationTime(latencies_us[latencies_us.size() / 2] * 1e-6);
  }
}
BENCHMARK(step_query)->UseManualTime()->Iterations(1);

void perceptron(benchmark::State& state, const char* text) {
  static const models::Table data =
      models::load(models::Source::parse("digits:n=8000").value(), 1).value();
  TrainOptions options = options_for("peer", "asp", 1);
  options.optimizer = models::Sgd{.lr = 0.1};
  options.job.steps = 1000;
  for (auto _ : state)
    std::visit(
        [&](const auto& model) {
          report_steps(state, actor::train(model, data, nullptr, options).value());
        },
        models::parse_model<float>(text, data).value());
}
BENCHMARK_CAPTURE(perceptron, 784_128_10, "mlp:784-128-10")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(perceptron, 784_512_512_10, "mlp:784-512-512-10")->UseManualTime()->Iterations(1);

void ten_thousand_workers(benchmark::State& state, const char* mode, const char* barrier) {
  static const models::Table data =
      models::load(models::Source::parse("linear:d=1000,n=20000").value(), 1).value();
  TrainOptions options = options_for(mode, barrier, 10'000);
  options.optimizer = models::Sgd{.lr = 0.01};
  options.job.steps = 20;
  for (auto _ : state)
    std::visit(
        [&](const auto& model) {
          report_steps(state, actor::train(model, data, nullptr, options).value());
        },
        models::parse_model<float>("linear", data).value());
}
BENCHMARK_CAPTURE(ten_thousand_workers, central_asp, "central", "asp")
    ->UseManualTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(ten_thousand_workers, hybrid_pssp, "hybrid", "pssp:s=4,beta=2")
    ->UseManualTime()
    ->Iterations(1);

}  // namespace
}  // namespace starling::benchmarks
