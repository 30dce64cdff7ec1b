/// Helpers of tests that compare two samples of simulations: both must have the same distribution.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "tests/engine/sim/step_runs.hpp"
#include "tests/engine/sim/two_samples.hpp"

namespace starling::sim {

/// The simulation that is run for both samples.
struct Comparison {
  const char* barrier;
  const char* recheck;
  std::size_t workers;
  Time horizon;
  /// The number of runs in each sample.
  std::uint64_t seeds;
  /// The last tenth of the workers is 4 times slower.
  bool stragglers = false;

  friend std::ostream& operator<<(std::ostream& out, const Comparison& comparison) {
    return out << comparison.barrier << " " << comparison.recheck << " " << comparison.workers
               << " workers" << (comparison.stragglers ? " with stragglers" : "");
  }
};

inline StepOptions options_of(const Comparison& comparison) {
  auto options =
      options_of(comparison.barrier, comparison.workers, "exp:100ms", comparison.recheck);
  options.horizon = comparison.horizon;
  if (comparison.stragglers) {
    options.slowness.resize(comparison.workers, 1);
    std::fill(options.slowness.end() - static_cast<std::ptrdiff_t>(comparison.workers / 10),
              options.slowness.end(), 4);
  }
  return options;
}

/// Added to the seed of the second sample: two runs of one seed have the same step times, so their
/// samples would not be independent.
inline constexpr std::uint64_t second_sample_seeds = 1'000'000;

/// Returns the number of seeds, which is smaller in sanitizer builds.
inline std::uint64_t seeds_of(const Comparison& comparison) {
  if (!sanitized) return comparison.seeds;
  return comparison.workers >= 1000 ? 1 : 4;
}

/// Compares samples that have one number from each run, because the runs are independent of each
/// other and the workers of one run are not.
inline void expect_same_distributions(const std::vector<StepResult>& a,
                                      const std::vector<StepResult>& b) {
  const auto expect_same = [&](const char* what, auto figure) {
    EXPECT_GT(kolmogorov_smirnov(figures(a, figure), figures(b, figure)), 0.001) << what;
  };
  expect_same("mean step", mean_step);
  expect_same("draws", [](const StepResult& r) { return r.draws; });
  expect_same("waiting share", [](const StepResult& r) { return r.waiting_share; });
  expect_same("smallest step", [](const StepResult& r) { return r.curve.back().min; });
  expect_same("largest step", [](const StepResult& r) { return r.curve.back().max; });
  expect_same("messages", [](const StepResult& r) { return r.messages.total(); });
  for (const std::size_t worker : {std::size_t{0}, a.front().steps.size() - 1}) {
    const auto step = [&](const StepResult& r) { return r.steps[worker]; };
    EXPECT_GT(chi_square(figures(a, step), figures(b, step)), 0.001) << "worker " << worker;
  }
}

/// Expects that exact sampling (StepCounts computes the probabilities of draws) gives the same
/// distributions as plain sampling (each draw is made).
inline void expect_exact_equals_plain(const Comparison& comparison) {
  auto options = options_of(comparison);
  const auto seeds = seeds_of(comparison);
  const auto exact = runs(options, seeds);
  options.sampling = Sampling::plain;
  options.seed += second_sample_seeds;
  expect_same_distributions(exact, runs(options, seeds));
}

}  // namespace starling::sim
