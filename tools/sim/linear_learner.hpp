/// A linear model that learns in a simulation of steps: its error shows what the updates under a
/// barrier are worth, and not only how many there are.
///
/// A worker reads the model w when it begins a step and draws a batch of samples (x, y). When it
/// ends the step, its update w -= (rate / workers) mean((x w(read) - y) x) is applied to the
/// current w. This is `--mode central` with plain SGD at learning rate `rate`: a round of updates
/// of all workers is one step at that rate on the union of the batches.
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
  std::size_t workers = 1000;
  double rate = 0.2;
  std::size_t batch = 2;
  std::uint64_t seed = 1;
  /// Virtual time between two measurements of the error.
  core::Time every = std::chrono::milliseconds{20};
};

/// Returns the options for a linear model of linear_parameters: rate 0.2, or less if there are
/// too few workers for that rate: 0.0002 for each worker, because SGD on normal features is stable
/// at rates below twice the samples of a round over the parameters.
[[nodiscard]] LearnerOptions learner_options(std::size_t workers, std::uint64_t seed);

/// The learner of one simulation. Starts from w = 0.
class LinearLearner final : public sim::Learner {
 public:
  /// The bytes that a worker's batch takes, at the batch size of 2 that learner_options() gives.
  static constexpr std::size_t bytes_a_worker = 2 * (sizeof(std::uint32_t) + sizeof(float));

  /// Requires: `problem` outlives it.
  LinearLearner(const LinearProblem& problem, const LearnerOptions& options);

  void on_begin(sim::MemberId worker, sim::Step step, core::Time now) override;
  void on_end(sim::MemberId worker, sim::Step step, core::Time now) override;

  /// Returns the normalised error |w - w*| / |w0 - w*| over virtual time in seconds, up to the last
  /// event.
  [[nodiscard]] const std::vector<PlotPoint>& errors() const noexcept { return errors_; }

  /// Returns the error of the last measurement.
  [[nodiscard]] double error() const noexcept { return errors_.back().y; }

 private:
  /// Measures the error at all instants up to `now`. Called before the event at `now` changes the
  /// model.
  void measure_until(core::Time now);
  [[nodiscard]] double normalised_error() const;

  const models::Table& table_;
  LearnerOptions options_;
  std::vector<float> model_;
  /// The batches of all workers, one after the other: the rows of the samples, and the residuals of
  /// the model that the worker read. A gradient needs nothing else of that model.
  std::vector<std::uint32_t> rows_;
  std::vector<float> residuals_;
  /// |w0 - w*|.
  double initial_distance_;
  core::Time next_measurement_{};
  std::vector<PlotPoint> errors_;
};

/// Returns the seconds after which the error first was at most `level`; nothing if it never was.
[[nodiscard]] std::optional<double> time_to(const std::vector<PlotPoint>& errors, double level);

}  // namespace starling::program
