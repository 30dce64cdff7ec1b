/// Adds the first workers of a job to a Coordinator. For tests.
#pragma once

#include <vector>

#include "starling/engine/core/worker/coordinator.hpp"

namespace starling::core {

/// `first_steps` has the step from which each worker starts, by worker.
inline void add_initial_workers(Coordinator& coordinator, const std::vector<Step>& first_steps) {
  MemberId worker = 0;
  for (const Step step : first_steps) coordinator.add_initial_worker(worker++, step);
}

}  // namespace starling::core
