/// A linear model that learns in a simulation of steps. Its error shows how much the updates under
/// a barrier improve a model, and not only how many updates there are.
///
/// A worker reads the model w when it begins a step and draws a batch of samples (x, y). When it
/// ends the step, its update w -= (rate / workers) mean((x w(read) - y) x) is applied to the
/// current w. This is `--mode central` with plain SGD at learning rate `rate`: one update of each
/// worker together make one step at that rate on the union of their batches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/models/table.hpp"
#include "starling/tools/report/plot.hpp"

namespace starling::program {

/// The numbers of parameters and of samples of the default problem.
inline constexpr std::size_t linear_parameters = 1000;
inline constexpr std::size_t linear_samples = 20000;

/// Samples of a linear model of known parameters. Immutable; several learners may use it at the
/// same time.
class LinearProblem {
 public:
  /// Makes `samples` rows with `parameters` normal features, and noise of standard deviation 0.1.
  static Result<LinearProblem> make(std::size_t parameters, std::size_t samples,
                                    std::uint64_t seed);

  [[nodiscard]] const models::Table& table() const noexcept { return table_; }

 private:
  explicit LinearProblem(models::Table table) : table_(std::move(table)) {}
  models::Table table_;
};

struct LearnerOptions {
  /// The number of workers in the simulation.
  std::size_t workers = 1000;
  /// The learning rate of a step of all workers together.
  double rate = 0.2;
  /// The number of samples in a worker's batch.
  std::size_t batch = 2;
  std::uint64_t seed = 1;
  /// Virtual time between two measurements of the error.
  core::Time every = std::chrono::milliseconds{20};
};

/// Returns the options for a linear model of linear_parameters parameters. The rate is the lower of
/// 0.2 and 0.0002 times the number of workers: SGD on normal features is stable while the rate is
/// below 2 B / P, where B is the sum of the workers' batch sizes and P the number of parameters.
[[nodiscard]] LearnerOptions learner_options(std::size_t workers, std::uint64_t seed);

/// The learner of one simulation. Begins with w = 0. Not thread-safe.
class LinearLearner final : public sim::Learner {
 public:
  /// The memory of a worker's batch in bytes, for the batch size of 2 of learner_options().
  static constexpr std::size_t bytes_per_worker = 2 * (sizeof(std::uint32_t) + sizeof(float));

  /// Requires: `problem` outlives the learner.
  LinearLearner(const LinearProblem& problem, const LearnerOptions& options);

  void on_begin(sim::MemberId worker, sim::Step step, core::Time now) override;
  void on_end(sim::MemberId worker, sim::Step step, core::Time now) override;

  /// Measures the error at `now`, when the simulation has ended.
  void finish(core::Time now);

  /// Returns the normalised error |w - w*| / |w0 - w*| over virtual time in seconds, up to the last
  /// event or the time of finish(). w* is the true model and w0 the initial one.
  [[nodiscard]] const std::vector<PlotPoint>& errors() const noexcept { return errors_; }

  /// Returns the error of the last measurement.
  [[nodiscard]] double error() const noexcept { return errors_.back().y; }

 private:
  /// Records the error at every measurement that is due up to `now`. Must be called before the
  /// event at `now` changes the model.
  void measure_until(core::Time now);
  [[nodiscard]] double normalised_error() const;

  const models::Table& table_;
  LearnerOptions options_;
  std::vector<float> model_;
  /// The batches of all workers, one after the other: the row of each sample, and the residual of
  /// the model that the worker read. The gradient depends on that model only through the residuals.
  std::vector<std::uint32_t> rows_;
  std::vector<float> residuals_;
  /// |w0 - w*|.
  double initial_distance_;
  core::Time next_measurement_{};
  std::vector<PlotPoint> errors_;
};

/// Returns the time in seconds of the first measurement with an error of at most `level`; nothing
/// if there is none. `errors` are as from LinearLearner::errors().
[[nodiscard]] std::optional<double> time_to(const std::vector<PlotPoint>& errors, double level);

}  // namespace starling::program
