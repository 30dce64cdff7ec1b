/// A linear model that learns in a simulation of steps: it shows what a barrier's updates are
/// worth, not only how many there are.
///
/// A worker reads the model w when it begins a step and draws a batch of samples (x, y). When it
/// ends the step, its update w -= (rate / workers) mean((x w(read) - y) x) is applied to the w of
/// that moment. This is `--mode central` with plain SGD at learning rate `rate`: a round of updates
/// by everyone is one step at that rate on the union of the batches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/models/table.hpp"
#include "starling/tools/report/plot.hpp"

namespace starling::program {

/// The default problem: its parameters, and its samples.
inline constexpr std::size_t linear_parameters = 1000;
inline constexpr std::size_t linear_samples = 20000;

/// Samples of a linear model of known parameters. Immutable; many learners may use it at once.
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

/// Returns the options for a linear model of linear_parameters: rate 0.2, or less where the workers
/// are so few that their batches together could not bear it (0.0002 for each worker: SGD on normal
/// features is stable below twice the samples over the parameters).
[[nodiscard]] LearnerOptions learner_options(std::size_t workers, std::uint64_t seed);

/// The learner of one simulation. Starts from w = 0.
class LinearLearner final : public sim::Learner {
 public:
  /// Bytes of a worker's batch of two samples, the size that learner_options() asks for.
  static constexpr std::size_t bytes_a_worker = 2 * (sizeof(std::uint32_t) + sizeof(float));

  /// Requires: `problem` outlives it.
  LinearLearner(const LinearProblem& problem, const LearnerOptions& options);

  void on_begin(sim::MemberId worker, sim::Step step, core::Time now) override;
  void on_end(sim::MemberId worker, sim::Step step, core::Time now) override;

  /// The normalised error |w - w*| / |w0 - w*| over virtual time in seconds, up to the last event.
  [[nodiscard]] const std::vector<PlotPoint>& errors() const noexcept { return errors_; }

  /// The error when it was last measured.
  [[nodiscard]] double error() const noexcept { return errors_.back().y; }

 private:
  /// Measures the error at all instants up to `now`, before the event at `now` changes the model.
  void catch_up(core::Time now);
  [[nodiscard]] double normalised_error() const;

  const models::Table& table_;
  LearnerOptions options_;
  std::vector<float> model_;
  /// By worker, the samples of its batch: the rows, and by how much the model that it read misses
  /// each label. The worker's gradient needs no more of that model.
  std::vector<std::uint32_t> rows_;
  std::vector<float> misses_;
  double first_;
  core::Time next_{};
  std::vector<PlotPoint> errors_;
};

/// Returns the seconds after which the error first was at most `level`; nothing where it never was.
[[nodiscard]] std::optional<double> time_to(const std::vector<PlotPoint>& errors, double level);

}  // namespace starling::program
