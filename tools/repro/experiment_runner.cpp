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

sim::StepOptions options_of(const World& world, std::uint64_t seed) {
  sim::StepOptions options{.workers = world.workers,
                           .barrier = barrier::parse(world.barrier).value(),
                           .recheck = barrier::parse_recheck(world.recheck).value(),
                           .seed = seed};
  if (!options.recheck.arrival) options.mode = core::Mode::peer;
  if (!world.straggler.empty())
    options.slowness =
        slowdown_factors({parse_straggler(world.straggler).value()}, world.workers).value();
  return options;
}

/// The error at which a run ends that need not last the whole time.
constexpr double error_end = 0.5 * ExperimentRunner::error_goal;

/// Returns the done share of a run that ends at `error_end`; its logarithm falls about evenly.
double share_to_goal(const LinearLearner& learner, double share_of_time) {
  const double error = std::clamp(learner.error(), error_end, 1.0);
  return std::max(share_of_time, std::log(error) / std::log(error_end));
}

}  // namespace

const std::vector<std::string>& published_five() {
  static const std::vector<std::string> all{"bsp", "ssp:s=4", "pbsp:beta=10", "pssp:s=4,beta=10",
                                            "asp"};
  return all;
}

void ExperimentRunner::want_learning(const World& world, bool whole) {
  auto& wanted = learned_[world];
  wanted.whole = wanted.whole || whole;
}

void ExperimentRunner::run() {
  simulate();
  learn();
}

void ExperimentRunner::simulate() {
  std::vector<sim::StepOptions> options;
  for (const auto& [world, runs] : runs_)
    for (std::uint64_t i = 0; i < options_.seeds; ++i)
      options.push_back(options_of(world, options_.seed + i));
  RunDisplay display{options_.quiet, "simulating"};
  auto made = simulate_all(options, options_.threads,
                           [&](const PieceProgress& done) { display.show(done); });
  display.finish(made);
  auto at = made.begin();
  for (auto& [world, runs] : runs_)
    for (std::uint64_t i = 0; i < options_.seeds; ++i) runs.push_back(std::move(*at++));
}

void ExperimentRunner::learn() {
  struct Piece {
    const World& world;
    bool whole;
    LearningRun& run;
  };
  std::vector<Piece> pieces;
  for (auto& [world, learned] : learned_) {
    learned.runs.resize(options_.seeds);
    for (std::uint64_t i = 0; i < options_.seeds; ++i) {
      learned.runs[i].seed = options_.seed + i;
      pieces.push_back({world, learned.whole, learned.runs[i]});
    }
  }
  const std::size_t samples = options_.quick ? 4000 : linear_samples;
  const auto problem = LinearProblem::make(linear_parameters, samples, options_.seed).value();
  std::vector<PieceWatch::Kind> kinds;
  for (const Piece& piece : pieces)
    kinds.push_back(
        kind_of(kinds.size() / options_.seeds, barrier::parse(piece.world.barrier).value()));
  PieceWatch watched{kinds, options_.threads};
  RunDisplay display{options_.quiet, "learning"};
  for_each_piece(
      pieces.size(), options_.threads,
      [&](std::size_t i) {
        const Piece& piece = pieces[i];
        watched.begin(i);
        LinearLearner learner{problem, learner_options(piece.world.workers, piece.run.seed)};
        auto options = options_of(piece.world, piece.run.seed);
        if (!piece.whole) options.horizon = 400s;
        options.on_progress = [&](double share) {
          watched.set(i, std::min(0.999, piece.whole ? share : share_to_goal(learner, share)));
          return piece.whole || learner.error() > error_end;
        };
        static_cast<void>(sim::simulate(options, &learner));
        piece.run.errors = learner.errors();
        watched.set(i, 1);
      },
      [&] { display.show(watched.progress()); });
}

}  // namespace starling::program
