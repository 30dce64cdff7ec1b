/// The notes on a job: what programs that follow it need to know of its data and its model. A node
/// writes them, and a follower that reads them needs neither. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/train/prepare.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

struct JobNotes {
  std::shared_ptr<const ModelDescription> description = nullptr;
  /// With the paths of the data as the nodes know them.
  ModelNotes model = {};
  DataSize data = {};
  DataAdvice advice = {};
  /// The metrics that the model computes over the test data, and those that an evaluation computes
  /// (metric_names()); empty without test data.
  models::Metrics metrics = {};
  std::vector<std::string> evaluation_metrics = {};
  /// True if AnyModel::normalised_error() may have a value.
  bool has_normalised_error = false;
  /// As RecordedRun::resume_note.
  std::string resume_note = {};
  /// As ResolvedJob::steps_before.
  std::uint64_t steps_before = 0;
};

/// Returns the notes on a job as JSON.
[[nodiscard]] std::string write_job_notes(const PreparedRun& ready);

/// Reads the result of write_job_notes(), which may come from another machine. Returns an Error if
/// it is malformed, or if the parameters are not valid.
[[nodiscard]] Result<JobNotes> read_job_notes(const std::string& text);

/// Returns the job that `job` and its `settings` describe, as nodes run it, for a Recorder in this
/// process. Its `evaluator` is null. Returns an Error if the settings that nodes do not receive do
/// not fit the job.
[[nodiscard]] Result<RecordedRun> describe_run(Job job, const Settings& settings, JobNotes notes);

}  // namespace starling::program
