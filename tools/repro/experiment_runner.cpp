#include "starling/tools/repro/experiment_runner.hpp"

#include <algorithm>
#include <cmath>

#include "starling/base/straggler.hpp"
#include "starling/tools/program/parallel.hpp"
#include "starling/tools/sim/linear_learner.hpp"
#include "starling/tools/sim/run_display.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

sim::StepOptions options_of(const SimulatedSetting& setting, std::uint64_t seed) {
  sim::StepOptions options{.workers = setting.workers,
                           .barrier = barrier::parse(setting.barrier).value(),
                           .recheck = barrier::parse_recheck(setting.recheck).value(),
                           .seed = seed};
  if (!options.recheck.arrival) options.mode = core::Mode::peer;
  if (!setting.straggler.empty())
    options.slowness =
        slowdown_factors({parse_straggler(setting.straggler).value()}, setting.workers).value();
  return options;
}

/// The normalised error at which a run ends, unless it has full length.
constexpr double error_end = 0.5 * ExperimentRunner::error_goal;

/// Estimates which share of a run that ends at `error_end` is done, from the logarithm of the
/// error, which falls at a nearly constant rate. `time_share` is the virtual time that has passed,
/// as a share of the longest time that the run may take.
double done_share(const LinearLearner& learner, double time_share) {
  const double error = std::clamp(learner.error(), error_end, 1.0);
  return std::max(time_share, std::log(error) / std::log(error_end));
}

}  // namespace

const std::vector<std::string>& published_five() {
  static const std::vector<std::string> barriers{"bsp", "ssp:s=4", "pbsp:beta=10",
                                                 "pssp:s=4,beta=10", "asp"};
  return barriers;
}

void ExperimentRunner::request_learning(const SimulatedSetting& setting, bool is_full_length) {
  LearningRuns& requested = learning_runs_[setting];
  requested.is_full_length = requested.is_full_length || is_full_length;
}

void ExperimentRunner::run() {
  simulate();
  learn();
}

void ExperimentRunner::simulate() {
  std::vector<sim::StepOptions> options;
  for (const auto& [setting, runs] : runs_)
    for (std::uint64_t i = 0; i < options_.seeds; ++i)
      options.push_back(options_of(setting, options_.seed + i));
  RunDisplay display{options_.quiet, "simulating"};
  auto results = simulate_all(options, options_.threads,
                              [&](const OverallProgress& done) { display.show(done); });
  display.finish(results);
  auto next = results.begin();
  for (auto& [setting, runs] : runs_)
    for (std::uint64_t i = 0; i < options_.seeds; ++i) runs.push_back(std::move(*next++));
}

void ExperimentRunner::learn() {
  struct Piece {
    const SimulatedSetting& setting;
    bool is_full_length;
    LearningRun& run;
  };
  std::vector<Piece> pieces;
  for (auto& [setting, learning] : learning_runs_) {
    learning.runs.resize(options_.seeds);
    for (std::uint64_t i = 0; i < options_.seeds; ++i) {
      learning.runs[i].seed = options_.seed + i;
      pieces.push_back({setting, learning.is_full_length, learning.runs[i]});
    }
  }
  const std::size_t samples = options_.quick ? 4000 : linear_samples;
  const auto problem = LinearProblem::make(linear_parameters, samples, options_.seed).value();
  // The pieces of one setting, one for each seed, have the same kind.
  std::vector<ProgressEstimator::Kind> kinds;
  for (const Piece& piece : pieces)
    kinds.push_back(
        kind_of(kinds.size() / options_.seeds, barrier::parse(piece.setting.barrier).value()));
  ProgressEstimator estimator{kinds, options_.threads};
  RunDisplay display{options_.quiet, "learning"};
  for_each_piece(
      pieces.size(), options_.threads,
      [&](std::size_t i) {
        const Piece& piece = pieces[i];
        estimator.begin(i);
        LinearLearner learner{problem, learner_options(piece.setting.workers, piece.run.seed)};
        auto options = options_of(piece.setting, piece.run.seed);
        if (!piece.is_full_length) options.horizon = 400s;
        options.on_progress = [&](double share) {
          estimator.set(i,
                        std::min(0.999, piece.is_full_length ? share : done_share(learner, share)));
          return piece.is_full_length || learner.error() > error_end;
        };
        static_cast<void>(sim::simulate(options, &learner));
        piece.run.errors = learner.errors();
        estimator.set(i, 1);
      },
      [&] { display.show(estimator.progress()); });
}

}  // namespace starling::program
