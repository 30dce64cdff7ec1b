/// Helpers to run simulations of steps and to extract numbers from their results. For tests.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "starling/engine/sim/steps/steps.hpp"
#include "tests/sanitized.hpp"

namespace starling::sim {

/// Returns options with step times of the distribution `law`. The mode is central if workers draw
/// again at arrivals, else peer.
inline StepOptions options_of(const std::string& barrier, std::size_t workers,
                              const std::string& law = "exp:100ms",
                              const std::string& recheck = "arrival") {
  StepOptions options;
  options.workers = workers;
  options.barrier = barrier::parse(barrier).value();
  options.step_time = parse_distribution(law).value();
  options.recheck = barrier::parse_recheck(recheck).value();
  if (!options.recheck.arrival) options.mode = core::Mode::peer;
  return options;
}

inline double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Returns the mean of the workers' last steps.
inline double mean_step(const StepResult& result) {
  return static_cast<double>(result.updates) / static_cast<double>(result.steps.size());
}

/// Returns one result for each of `seeds` seeds: options.seed and those that follow it.
inline std::vector<StepResult> runs(StepOptions options, std::uint64_t seeds) {
  std::vector<StepResult> results;
  for (; results.size() < seeds; ++options.seed) results.push_back(simulate(options));
  return results;
}

/// Returns `figure(result)` of each result.
template <class Figure>
std::vector<double> figures(const std::vector<StepResult>& results, Figure figure) {
  std::vector<double> values;
  values.reserve(results.size());
  for (const StepResult& result : results) values.push_back(static_cast<double>(figure(result)));
  return values;
}

}  // namespace starling::sim
