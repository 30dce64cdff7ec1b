/// The step times of a real cluster, as a user has recorded them, and random step times that are
/// drawn from them. Blocking reads; thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/job/interval.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/advise/trial.hpp"

namespace starling::program {

/// The recorded steps of one worker.
struct RecordedWorker {
  std::string name;
  /// How long each of its steps took, in their order. All are above 0.
  std::vector<core::Time> durations{};
};

/// At least two workers, each with at least `recorded_steps_min` steps, in the order in which the
/// file names them first.
using StepTrace = std::vector<RecordedWorker>;

/// With fewer recorded steps, resampled ones would say little of the worker.
inline constexpr std::size_t recorded_steps_min = 20;
/// The largest number of workers for which the simulation of every message is quick.
inline constexpr std::size_t recorded_workers_max = 64;

/// Reads step times from a file of one of two formats. Refuses a bad or a cut-off file; the Error
/// names the file and the line.
///
/// CSV: the first line is `worker,step,seconds`. Each other line is a step: the worker's name, the
/// number of the step, which rises from each line of a worker to the next, and how many seconds the
/// step took without waiting at a barrier. Each line ends with a new line, so that a cut-off file
/// is recognised.
///
/// JSON: a trace that `train --trace` or `submit --trace` has written. A step takes as long as its
/// intervals `plan`, `read`, `compute`, `delay` and `write` together. Steps of which intervals are
/// missing are left out: the steps around a gap and, in the trace of a job on nodes, the last step
/// of each worker.
[[nodiscard]] Result<StepTrace> read_step_trace(const std::string& path);

/// Reads the content of a file in the CSV format. Errors begin with `path`.
[[nodiscard]] Result<StepTrace> parse_step_csv(std::string_view text, const std::string& path);
/// Reads the content of a file in the JSON format. Errors begin with `path`.
[[nodiscard]] Result<StepTrace> parse_step_json(std::string_view text, const std::string& path);

/// Returns how long the steps of a worker that still runs took, without waiting. Leaves out its
/// last step and the steps of which intervals are missing. `intervals` are in the order of time.
[[nodiscard]] std::vector<core::Time> complete_steps(std::span<const actor::Interval> intervals);

/// Returns an Error if slow workers compute less in each step than others under this barrier or
/// batch, because the recorded step times then hide how slow they are. Both are texts as in a job
/// file; an empty text stands for the default.
[[nodiscard]] Result<void> check_recorded_job(const std::string& barrier, const std::string& batch);

/// Returns an Error if the trace has too few or too many workers, or too few steps of one.
[[nodiscard]] Result<void> check_step_trace(const StepTrace& trace);

/// Returns step times that are drawn from the recorded ones of each worker, in blocks: each block
/// is `block_steps` consecutive recorded steps from a uniformly drawn one on, and the first
/// recorded step follows the last one (circular block bootstrap: Politis, Romano, 1992). Blocks
/// keep slow phases that last several steps. The function has a state: each run needs a copy of its
/// own.
[[nodiscard]] StepTimes resampled(std::shared_ptr<const StepTrace> trace);
inline constexpr std::size_t block_steps = 16;

/// Statistics of the recorded steps of a worker.
struct RecordedFigures {
  double mean_s = 0;
  /// The standard deviation of the step times divided by their mean.
  double jitter = 0;
  /// The mean divided by that of the worker with the smallest mean.
  double slowness = 1;
};
/// Returns the figures of each worker.
[[nodiscard]] std::vector<RecordedFigures> figures_of(const StepTrace& trace);

}  // namespace starling::program
