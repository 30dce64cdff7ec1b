/// Trains a noisy quadratic model, message by message in peer mode, to see what barriers make of
/// its loss. For tests.
///
/// The loss is half the sum of h w^2 over parameters of four curvatures h, as in the noisy
/// quadratic model (Zhang et al., arXiv 1907.04164, section 3). The gradient that a worker computes
/// has normal noise whose variance is proportional to h.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/exchange/applier.hpp"
#include "starling/engine/sim/protocol/protocol.hpp"

namespace starling::sim {

struct ProgressScenario {
  std::size_t workers = 16;
  std::size_t stragglers = 0;
  double slowness = 1;
  /// The law of the step times of a worker that is no straggler; its mean is 100 ms.
  std::string step_time = "gamma:mean=100ms,shape=25";
  /// Without momentum and stale updates, rates below 2 are stable.
  double rate = 0.7;
  double momentum = 0;
  double noise = 0.3;
  Time horizon = std::chrono::seconds{16};
};

/// The figures of a scenario under one barrier.
struct ProgressFigures {
  /// The mean loss in the last eighth of the time, as a share of that at the start; at most 1e6.
  double loss = 0;
  double waiting = 0;
};

inline constexpr std::size_t quadratic_parameters = 32;
inline double curvature_of(std::size_t parameter) {
  constexpr std::array curvatures{1.0, 0.3, 0.1, 0.03};
  return curvatures[parameter % curvatures.size()];
}

inline Job quadratic_job(const ProgressScenario& scenario, std::uint64_t seed) {
  Job job;
  core::Layout layout;
  layout.parameters = {{.name = "w", .shape = {quadratic_parameters}}};
  layout.offsets = {0};
  layout.ranges = {{0, quadratic_parameters, 0, {{0, 0, 0, quadratic_parameters}}}};
  layout.size = quadratic_parameters;
  std::vector<double> initial;
  for (std::size_t i = 0; i < quadratic_parameters; ++i)
    initial.push_back(1 / std::sqrt(curvature_of(i) * quadratic_parameters));
  job.initial_states.push_back(
      {.range = 0,
       .value = {core::Buffer::copy_of<double>(initial), 0, quadratic_parameters, nullptr},
       .slots = {},
       .ledger = {}});
  job.layout = std::make_shared<const core::Layout>(std::move(layout));
  job.applier = core::gradient_applier<double>(
      {.optimizer = models::Sgd{.lr = scenario.rate, .momentum = scenario.momentum},
       .schedule = {},
       .l2 = 0,
       .batch = 1});
  job.compute = [seed, noise = scenario.noise](MemberId worker, const core::Compute& read) {
    Random random = Random::stream(seed, worker, read.step);
    auto gradient = core::Buffer::make<double>(quadratic_parameters);
    const auto w = read.values.front().value.as<double>();
    for (std::size_t i = 0; i < quadratic_parameters; ++i)
      gradient->as<double>()[i] =
          curvature_of(i) * w[i] +
          noise * std::sqrt(curvature_of(i) / quadratic_parameters) * random.normal();
    return core::Update{.parts = {{0, {std::move(gradient), 0, quadratic_parameters, nullptr}}},
                        .samples = 1};
  };
  job.evaluate = [](const std::vector<core::RangeState>& states) {
    const auto w = states.front().value.as<double>();
    double loss = 0;
    for (std::size_t i = 0; i < quadratic_parameters; ++i) loss += curvature_of(i) * w[i] * w[i];
    return models::Metrics{{.name = "loss", .value = loss}};
  };
  return job;
}

inline ProgressFigures progress_of(const std::string& barrier, const ProgressScenario& scenario,
                                   std::uint64_t seed) {
  ProtocolOptions options;
  options.mode = core::Mode::peer;
  options.barrier = barrier::parse(barrier).value();
  options.recheck = barrier::Recheck::distributed();
  options.workers = scenario.workers;
  options.step_time = parse_distribution(scenario.step_time).value();
  options.slowness.assign(scenario.workers, 1);
  std::fill_n(options.slowness.begin(), scenario.stragglers, scenario.slowness);
  options.horizon = scenario.horizon;
  options.point_every = scenario.horizon / 200;
  options.seed = seed;
  Protocol protocol{options, quadratic_job(scenario, seed)};
  double loss = 0;
  double points = 0;
  protocol.on_point = [&](const ProtocolPoint& point) {
    if (8 * point.at <= 7 * scenario.horizon) return true;
    const double present = point.metrics.front().value;
    loss += std::isfinite(present) ? std::min(present, 1e6) : 1e6;
    points += 1;
    return true;
  };
  (void)protocol.run();
  return {loss / points, protocol.result().waiting_share};
}

/// Returns the geometric mean of the losses, and the mean waiting, of `seeds` runs.
inline ProgressFigures mean_progress_of(const std::string& barrier,
                                        const ProgressScenario& scenario, std::uint64_t seeds) {
  ProgressFigures mean;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const ProgressFigures one = progress_of(barrier, scenario, seed);
    mean.loss += std::log(one.loss) / static_cast<double>(seeds);
    mean.waiting += one.waiting / static_cast<double>(seeds);
  }
  mean.loss = std::exp(mean.loss);
  return mean;
}

}  // namespace starling::sim
