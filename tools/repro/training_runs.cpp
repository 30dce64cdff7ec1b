#include "starling/tools/repro/training_runs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/tools/program/parallel.hpp"
#include "starling/tools/repro/kept_models.hpp"
#include "starling/tools/sim/run_display.hpp"

namespace starling::program {
namespace {

/// Returns the accuracy among `metrics`; NaN if the model has none.
double accuracy_of(const models::Metrics& metrics) {
  const auto found = std::ranges::find(metrics, "accuracy", &models::Metric::name);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->value;
}

/// Returns the first `count` samples of `data`; all samples if there are fewer, or if the data
/// cannot be divided.
AnyData first_samples(const AnyData& data, std::size_t count) {
  if (!data.is_divisible() || data.size() <= count) return data;
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0U);
  return data.select(rows);
}

/// Makes one training run after another, and shows the progress of all.
class Trainer {
 public:
  Trainer(const PreparedRun& ready, const TrainingOptions& options)
      : ready_(ready),
        options_(options),
        test_samples_(first_samples(*ready.test(), options.samples)),
        seconds_(in_seconds(*ready.resolved.options.job.time)),
        display_(options.quiet, "training") {}

  /// Trains under this barrier with this seed, and then evaluates the models that were kept.
  Result<TrainingRun> run(const barrier::Barrier& barrier, std::uint64_t seed) {
    actor::TrainOptions job = ready_.resolved.options;
    job.job.barrier = barrier;
    job.job.seed = seed;
    job.job.evaluate_train = false;
    KeptModels models{seconds_, options_.evals};
    job.job.stop_when = [&](const actor::Progress& progress, const KeptModels::States& states) {
      models.record(in_seconds(progress.elapsed), static_cast<double>(progress.updates), states);
      return false;
    };
    job.job.on_progress = [&](const actor::Progress& progress) {
      show(in_seconds(progress.elapsed) / seconds_);
      return true;
    };
    const auto outcome = ready_.model->train(ready_.data.train, nullptr, job);
    if (!outcome) return outcome.error();
    if (outcome->end == actor::Outcome::End::failed) return Error{outcome->error};
    models.record_end(static_cast<double>(outcome->last.updates), outcome->model);
    ++runs_done_;
    return figures_of(seed, *outcome, models);
  }

 private:
  /// Shows the progress of all runs. `share` is how much of the present run is done, from 0 to 1.
  void show(double share) {
    const auto runs = static_cast<double>(options_.barriers.size() * options_.seeds);
    display_.show((static_cast<double>(runs_done_) + std::min(1.0, share)) / runs);
  }

  [[nodiscard]] TrainingRun figures_of(std::uint64_t seed, const actor::Outcome& outcome,
                                       const KeptModels& models) const {
    const actor::Progress& last = outcome.last;
    return {.seed = seed,
            .curve = models.curve(evaluate_all(models.models())),
            .steps_min = static_cast<double>(last.spread.min),
            .steps_median = static_cast<double>(last.spread.median),
            .steps_max = static_cast<double>(last.spread.max),
            .waiting_share = last.waiting_share,
            .overhead_ms = 1000 * in_seconds(last.mean_work_time)};
  }

  [[nodiscard]] std::vector<double> evaluate_all(
      const std::vector<KeptModels::Model>& models) const {
    std::vector<double> accuracies(models.size());
    for_each_piece(
        models.size(), std::max(1U, std::thread::hardware_concurrency()),
        [&](std::size_t i) {
          const Weights weights =
              ready_.model->collect(ready_.resolved.options.job, models[i].states);
          accuracies[i] = accuracy_of(ready_.model->evaluate(weights, test_samples_));
        },
        [] {});
    return accuracies;
  }

  const PreparedRun& ready_;
  const TrainingOptions& options_;
  /// The test samples on which the models are evaluated.
  AnyData test_samples_;
  /// The wall time of each run.
  double seconds_;
  RunDisplay display_;
  std::uint64_t runs_done_ = 0;
};

}  // namespace

Result<void> check_accuracy(const PreparedRun& ready) {
  if (ready.test() == nullptr)
    return Error{"--data: " + ready.resolved.data +
                 " cannot be divided into training and test samples; valid: --test SOURCE too"};
  if (std::isfinite(accuracy_of(ready.model->metrics_of_one_sample(*ready.test())))) return {};
  return Error{"--model: " + ready.resolved.model +
               " has no accuracy; valid: a model that classifies, such as softmax"};
}

Result<std::vector<BarrierRuns>> run_training(const PreparedRun& ready,
                                              const TrainingOptions& options) {
  std::vector<BarrierRuns> runs;
  for (const auto& barrier : options.barriers)
    runs.push_back({barrier, std::vector<TrainingRun>(options.seeds)});
  Trainer trainer{ready, options};
  for (std::uint64_t s = 0; s < options.seeds; ++s)
    for (std::size_t turn = 0; turn < runs.size(); ++turn) {
      BarrierRuns& next = runs[(s + turn) % runs.size()];
      const std::uint64_t seed = options.seed + s;
      auto run = trainer.run(next.barrier, seed);
      if (!run)
        return std::move(run).error().within(barrier::print(next.barrier) + ", seed " +
                                             std::to_string(seed));
      next.runs[s] = *std::move(run);
    }
  return runs;
}

}  // namespace starling::program
