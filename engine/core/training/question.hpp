/// The questions that members of a training job answer to actors that are not members: a user's own
/// actors, the hooks of the engines. A question changes no state of a core. Plain values.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "starling/barrier/tuner.hpp"
#include "starling/engine/core/message.hpp"

namespace starling::core {

/// To a worker: asks for its step; answered by WorkerStep.
struct AskStep {};
/// To the coordinator: asks for the workers' steps; answered by StepsReport.
struct AskSteps {};
/// To the member that answers for a range: asks for the current values of the range's elements, or
/// of some of its rows, without waiting for a round; answered by Value.
struct AskValue {
  RangeId range = 0;
  /// nullptr: the whole range.
  Rows rows;

  static constexpr auto fields(auto& m) { return std::tie(m.range, m.rows); }
};

struct WorkerStep {
  Step step = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.step); }
};
/// The workers' steps, as the coordinator knows them.
struct StepsReport {
  Step min = 0;
  Step max = 0;
  /// The largest difference between the highest and the lowest step so far.
  Step max_lag = 0;
  /// How often the workers' barriers have drawn, and how many of these draws let a worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The sums of the current staleness s and sample size beta over the workers; all zero unless
  /// the barrier tunes itself.
  barrier::TunedSum tuned = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.min, m.max, m.max_lag, m.draws, m.passes, m.tuned);
  }
};

}  // namespace starling::core
