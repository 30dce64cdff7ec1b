/// The options of the training role that follow from a job, in one process and on nodes.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "starling/actor/compute/task.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/engine/core/training/training.hpp"

namespace starling::actor {

/// Returns the options of a job's members. `initial_states` has the state of each range at the
/// start. The caller sets the window, the largest number of workers and the deal.
[[nodiscard]] inline core::TrainingOptions training_options(
    const JobOptions& job, const Task& task, core::ApplierPtr applier,
    std::shared_ptr<const core::Layout> layout,
    std::shared_ptr<const std::vector<core::RangeState>> initial_states) {
  core::TrainingOptions training;
  training.mode = job.mode;
  training.worker.last_step = job.steps;
  training.worker.asks_for_plan = task.chooses_reads();
  training.worker.barrier = job.barrier;
  training.worker.recheck = job.recheck.value_or(core::default_recheck(job.mode));
  training.worker.attempts = job.attempts;
  training.exchange.name = job.exchange;
  training.exchange.cache = job.cache;
  training.exchange.has_early_parts = task.has_early_parts();
  training.exchange.rounds_to_bf16 = task.rounds_to_bf16();
  training.exchange.layout = std::move(layout);
  training.exchange.applier = std::move(applier);
  training.exchange.workers = job.workers;
  training.exchange.initial_states = std::move(initial_states);
  return training;
}

}  // namespace starling::actor
