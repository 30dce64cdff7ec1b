/// Helpers of tests that compare two samples of simulations: both must have the same distribution.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "tests/engine/sim/step_runs.hpp"
#include "tests/engine/sim/two_samples.hpp"

namespace starling::sim {

struct Pair {
  const char* barrier;
  const char* recheck;
  std::size_t workers;
  Time horizon;
  std::uint64_t seeds;
  /// The last tenth of the workers is 4 times slower.
  bool stragglers = false;

  friend std::ostream& operator<<(std::ostream& out, const Pair& pair) {
    return out << pair.barrier << " " << pair.recheck << " " << pair.workers << " workers"
               << (pair.stragglers ? " with stragglers" : "");
  }
};

inline StepOptions options_of(const Pair& pair) {
  auto options = options_of(pair.barrier, pair.workers, "exp:100ms", pair.recheck);
  options.horizon = pair.horizon;
  if (pair.stragglers) {
    options.slowness.resize(pair.workers, 1);
    std::fill(options.slowness.end() - static_cast<std::ptrdiff_t>(pair.workers / 10),
              options.slowness.end(), 4);
  }
  return options;
}

/// Added to the seed of the second sample: two runs of one seed have the same step times, so their
/// samples would not be independent.
inline constexpr std::uint64_t other_seeds = 1'000'000;

inline std::uint64_t seeds_of(const Pair& pair) {
  if (!sanitized) return pair.seeds;
  return pair.workers >= 1000 ? 1 : 4;
}

/// Compares one number of each run, because runs are independent of each other and the workers of
/// one run are not.
inline void expect_one_law(const std::vector<StepResult>& a, const std::vector<StepResult>& b) {
  const auto one_law = [&](const char* what, auto figure) {
    EXPECT_GT(kolmogorov_smirnov(figures(a, figure), figures(b, figure)), 0.001) << what;
  };
  one_law("mean step", mean_step);
  one_law("draws", [](const StepResult& r) { return r.draws; });
  one_law("waiting share", [](const StepResult& r) { return r.waiting_share; });
  one_law("smallest step", [](const StepResult& r) { return r.curve.back().min; });
  one_law("largest step", [](const StepResult& r) { return r.curve.back().max; });
  one_law("messages", [](const StepResult& r) { return r.messages.total(); });
  for (const std::size_t worker : {std::size_t{0}, a.front().steps.size() - 1}) {
    const auto step = [&](const StepResult& r) { return r.steps[worker]; };
    EXPECT_GT(chi_square(figures(a, step), figures(b, step)), 0.001) << "worker " << worker;
  }
}

inline void expect_exact_equals_plain(const Pair& pair) {
  auto options = options_of(pair);
  const auto seeds = seeds_of(pair);
  const auto exact = runs(options, seeds);
  options.sampling = Sampling::plain;
  options.seed += other_seeds;
  expect_one_law(exact, runs(options, seeds));
}

}  // namespace starling::sim
