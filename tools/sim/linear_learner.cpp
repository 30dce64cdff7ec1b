#include "starling/tools/sim/linear_learner.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/random.hpp"
#include "starling/base/seconds.hpp"
#include "starling/models/data/load.hpp"
#include "starling/models/kernels/kernels.hpp"

namespace starling::program {
namespace {

/// The id of the random stream that draws batches. No other draw of a simulation uses this stream.
constexpr std::uint64_t batch_stream = 0x6261746368;

}  // namespace

Result<LinearProblem> LinearProblem::make(std::size_t parameters, std::size_t samples,
                                          std::uint64_t seed) {
  const auto source = models::Source::parse("linear:d=" + std::to_string(parameters) +
                                            ",n=" + std::to_string(samples) + ",noise=0.1");
  if (!source) return source.error();
  auto table = models::load(*source, seed);
  if (!table) return std::move(table).error();
  return LinearProblem{*std::move(table)};
}

LearnerOptions learner_options(std::size_t workers, std::uint64_t seed) {
  LearnerOptions options{.workers = workers, .seed = seed};
  options.rate = std::min(options.rate, 0.0002 * static_cast<double>(workers));
  return options;
}

LinearLearner::LinearLearner(const LinearProblem& problem, const LearnerOptions& options)
    : table_(problem.table()),
      options_(options),
      model_(table_.features()),
      rows_(options.workers * options.batch),
      residuals_(options.workers * options.batch),
      initial_distance_(
          std::sqrt(models::squared_norm(std::span<const float>{table_.true_weights}))),
      next_measurement_(options.every),
      errors_{{0, 1}} {}

void LinearLearner::on_begin(sim::MemberId worker, sim::Step step, core::Time now) {
  measure_until(now);
  auto random = Random::stream(options_.seed, batch_stream, worker, step);
  for (std::size_t i = worker * options_.batch; i < (worker + 1) * options_.batch; ++i) {
    rows_[i] = static_cast<std::uint32_t>(random.below(table_.size()));
    residuals_[i] = models::dot(table_.dense_row(rows_[i]), std::span<const float>{model_}) -
                    table_.label(rows_[i]);
  }
}

void LinearLearner::on_end(sim::MemberId worker, sim::Step /*step*/, core::Time now) {
  measure_until(now);
  const auto rate =
      static_cast<float>(options_.rate / static_cast<double>(options_.workers * options_.batch));
  for (std::size_t i = worker * options_.batch; i < (worker + 1) * options_.batch; ++i)
    models::axpy(-rate * residuals_[i], table_.dense_row(rows_[i]), std::span{model_});
}

void LinearLearner::measure_until(core::Time now) {
  if (now < next_measurement_) return;
  const double error = normalised_error();
  for (; next_measurement_ <= now; next_measurement_ += options_.every)
    errors_.push_back({in_seconds(next_measurement_), error});
}

void LinearLearner::finish(core::Time now) {
  measure_until(now);
  // The last measurement came before the updates of its own moment.
  if (in_seconds(now) > errors_.back().x) errors_.push_back({in_seconds(now), 0});
  errors_.back().y = normalised_error();
}

double LinearLearner::normalised_error() const {
  double squares = 0;
  for (std::size_t i = 0; i < model_.size(); ++i) {
    const double difference =
        static_cast<double>(model_[i]) - static_cast<double>(table_.true_weights[i]);
    squares += difference * difference;
  }
  return std::sqrt(squares) / initial_distance_;
}

std::optional<double> time_to(const std::vector<PlotPoint>& errors, double level) {
  for (const PlotPoint& point : errors)
    if (point.y <= level) return point.x;
  return std::nullopt;
}

}  // namespace starling::program
