/// A prepared job, and the recorder that shows its progress and writes its results.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/files/metrics_file.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/model_selection.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/train/advice.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/report.hpp"
#include "starling/tools/train/trace_file.hpp"

namespace starling::program {

/// Computes the figures of a job's model where the job's data are: in this process, or on a node.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  [[nodiscard]] virtual bool has_test_data() const = 0;
  /// Returns the model's metrics over the training data. Empty if no node answers.
  [[nodiscard]] virtual models::Metrics on_training_data(
      const std::vector<core::RangeState>& states) const = 0;
  /// Returns the model's metrics over the test data, and the metric of `until` if the model does
  /// not compute it. Empty if no node answers. Requires: has_test_data().
  [[nodiscard]] virtual models::Metrics on_test_data(
      const std::vector<core::RangeState>& states) const = 0;
  /// See AnyModel::normalised_error(). Returns nothing if no node answers.
  [[nodiscard]] virtual std::optional<double> normalised_error(
      const std::vector<core::RangeState>& states) const = 0;
  /// Says why the last call has returned no metrics; empty if it has returned some.
  [[nodiscard]] virtual std::string error() const { return {}; }
};

/// A job after all checks, as far as a Recorder needs it. The job runs in this process or on nodes.
struct RecordedRun {
  /// The job as the user asked for it, with the scale that was chosen.
  Job job = {};
  /// The job as it will run, with all defaults replaced by values.
  ResolvedJob resolved = {};
  /// Describes the job's model, and what a file of the model says about it.
  std::shared_ptr<const ModelDescription> description = {};
  ModelNotes notes = {};
  DataAdvice data_advice = {};
  /// Empty if the job neither writes a checkpoint nor resumes from one.
  JobIdentity identity = {};
  /// Says how this job differs from the one that wrote its checkpoint, and at which step it goes
  /// on; empty if it does not differ. Users must see it even if the job is quiet, because steps do
  /// not count as before.
  std::string resume_note = {};
  std::shared_ptr<const Evaluator> evaluator = {};

  [[nodiscard]] Weights weights_in(const std::vector<core::RangeState>& states) const {
    return description->collect(resolved.options.job, states);
  }
};

/// A job that is ready to start in this process.
struct PreparedRun : RecordedRun {
  TrainAndTest data;
  /// The same object as `description`.
  std::shared_ptr<const AnyModel> model;

  /// Returns the test data; null if there is none.
  [[nodiscard]] const AnyData* test() const { return data.test ? &*data.test : nullptr; }
};

/// Returns an evaluator that computes in this process. It keeps the data and the model of `ready`;
/// on_test_data() adds the metrics of JobOptions::extra_metrics.
[[nodiscard]] std::shared_ptr<const Evaluator> local_evaluator(const PreparedRun& ready);

/// Shows the progress of a job, and writes its metrics, checkpoints, model, trace and report. The
/// job's observer calls it from one thread while the job runs. After the job's end, the caller that
/// started the job calls end().
class Recorder {
 public:
  /// Requires: `run` outlives the recorder.
  Recorder(const RecordedRun& run, MetricsFile metrics);

  /// Shows the job's progress and appends it to the metrics. Returns false if the job is to stop:
  /// after Ctrl-C, or if a file could not be written. On a cluster, `missing` names the dead nodes.
  [[nodiscard]] bool on_progress(const actor::Progress& progress, const std::string& missing = {});

  /// Prints a warning on stderr, even if the job is quiet, and adds it to the report.
  void warn(const std::string& message);

  /// Records an evaluation; `states` are those of the evaluated model. Evaluations come in the
  /// order of their steps. Returns false if the job is to stop: for the reasons of on_progress(),
  /// or because patience is over.
  [[nodiscard]] bool on_evaluated(const actor::Progress& progress,
                                  const std::vector<core::RangeState>& states);

  /// Returns true once as many evaluations in a row as patience allows had no better test loss.
  [[nodiscard]] bool is_patience_over() const { return selection_.is_patience_over(); }

  /// On nodes: sets the former deals of the next checkpoint, and how many updates this run has made
  /// up to its states.
  void set_history(std::vector<models::FormerDeal> deals, std::uint64_t updates) {
    former_deals_ = std::move(deals);
    updates_made_ = updates;
  }

  /// Replaces the checkpoint file and returns true. Returns false if it cannot be written, if the
  /// job has no checkpoint file, or if no job could resume from `states`: no update was made,
  /// values are not finite, a range has no ledger, or the ranges of a bsp job are at different
  /// rounds. In one process, if batches are dynamic or workers hand in early, `deals` are the last
  /// deals, the latest one last. Then it also returns false while the workers pass from one deal to
  /// the next.
  bool on_checkpoint(const std::vector<core::RangeState>& states,
                     const std::vector<std::shared_ptr<const core::Deal>>& deals = {});

  /// Sets the trace that end() writes. Requires: what it refers to outlives the call of end().
  void set_trace(Trace trace) { trace_ = std::move(trace); }
  /// Writes the trace, if the user named a file for it. Warns if some intervals were not
  /// recorded. end() calls this function; a caller that does not call end() calls it itself.
  [[nodiscard]] Result<void> write_timeline();

  /// Writes the kept model, the last checkpoint, the trace, the report and the last line of the
  /// metrics. Returns how the job ended.
  [[nodiscard]] EndedJob end(const actor::Outcome& outcome, const WorkerFates& workers = {});

 private:
  using States = std::vector<core::RangeState>;

  /// Returns true if the job has made no update for 1.5 s and for as long as three steps take.
  [[nodiscard]] bool is_stalled(const actor::Progress& progress);
  /// Returns how many updates `states`, from which a job would resume, contain.
  [[nodiscard]] std::uint64_t updates_in(const States& states) const;
  /// Returns true if `result` is a success. Otherwise keeps the error, if it is the first one.
  bool record_result(const Result<void>& result);
  void add_to_curves(const actor::Progress& progress);
  /// Saves the model, if the user named a file for it and `states` is not empty.
  void save(const States& states, const KeptModel& kept);
  /// Chooses the model to save and report: the best or the last one, or, if the job failed, the
  /// latest one whose values are finite. Returns its states, and describes it in `kept`.
  [[nodiscard]] States choose_model(const actor::Outcome& outcome, bool has_failed,
                                    KeptModel& kept) const;
  /// Adds the last figures to the curves and writes the report, if the user named a file for it.
  void write_page(EndedJob& ended);
  /// Returns the latest of `last` and `recent_models_` whose values and metrics are finite. Returns
  /// no states if there is none, or if the user named no file for the model.
  [[nodiscard]] States latest_finite(const States& last) const;
  /// Returns true if the model was updated, and its values and metrics are finite. If no node can
  /// evaluate it, the metrics count as finite if it `was_evaluated` before.
  [[nodiscard]] bool has_finite_figures(const States& states, bool was_evaluated) const;

  const RecordedRun& run_;
  std::optional<std::vector<models::FormerDeal>> former_deals_;
  /// The updates that this run has made up to the states of the next checkpoint (set_history()).
  /// Absent in one process, where the ledgers of the states give them.
  std::optional<std::uint64_t> updates_made_;
  MetricsFile metrics_;
  Display display_;
  Curves curves_;
  ModelSelection selection_;
  /// Pairs of the workers' mean step and the test loss; thinned out if there are many.
  ThinnedSeries<std::pair<double, double>> losses_;
  /// The number of updates at the last call of on_progress().
  std::uint64_t updates_ = 0;
  /// The time from the start of the job until `updates_` last changed.
  core::Time last_update_at_{};
  /// The first error of writing a file; empty if there was none.
  std::string error_;
  /// The paths of the model and of the checkpoint that were written; each is empty before that.
  std::string saved_;
  std::string checkpoint_;
  std::optional<Trace> trace_;
  /// The path of the trace that was written; empty before that.
  std::string trace_path_;
  /// The last two models that were evaluated and had finite test metrics, the older first.
  std::array<States, 2> recent_models_;
};

}  // namespace starling::program
