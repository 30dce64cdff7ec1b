/// The notes on a job: what programs that follow the job need to know of its data and its model. A
/// node writes them, so that a follower needs neither the data nor the model. Thread-safe.
#pragma once

#include <memory>
#include <optional>
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
  /// Has the paths of the data as the nodes know them.
  ModelNotes model = {};
  DataSize data = {};
  DataAdvice advice = {};
  /// The metrics that the model computes over the test data, and those that an evaluation computes
  /// (metric_names()); empty without test data. `metrics` is nullopt if they are not known, because
  /// the user's model throws for parameters of 0.
  std::optional<models::Metrics> metrics = std::nullopt;
  std::vector<std::string> evaluation_metrics = {};
  /// True if AnyModel::normalised_error() may have a value.
  bool has_normalised_error = false;
  /// As RecordedRun::resume_note.
  std::string resume_note = {};
};

/// Returns the notes on a job as JSON.
[[nodiscard]] std::string write_job_notes(const PreparedRun& ready);

/// Reads the result of write_job_notes(), which may come from another machine. Returns an Error if
/// it is malformed, or if the parameters are not valid.
[[nodiscard]] Result<JobNotes> read_job_notes(const std::string& text);

/// Returns the job that `job` and its `settings` describe, as nodes run it, for a Recorder in this
/// process. The `evaluator` of the result is null. Returns an Error if a setting that nodes do not
/// receive, such as `until`, does not fit the job.
[[nodiscard]] Result<RecordedRun> describe_run(Job job, const Settings& settings, JobNotes notes);

}  // namespace starling::program
