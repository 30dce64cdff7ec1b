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
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// A job that is ready to start, after all checks.
struct PreparedRun {
  Job job;
  TrainAndTest data;
  std::shared_ptr<const AnyModel> model;
  ResolvedJob running;
  ModelNotes notes;
  JobIdentity identity;

  [[nodiscard]] const AnyData* test() const { return data.test ? &*data.test : nullptr; }
  [[nodiscard]] Weights weights_in(const std::vector<core::RangeState>& states) const {
    return model->collect(running.options.job, states);
  }
  /// Evaluates the model with these states on the test data. Requires: test() is not null.
  [[nodiscard]] models::Metrics evaluate_on_test_data(
      const std::vector<core::RangeState>& states) const;
};

/// Records a job. The job's observer calls it from one thread while the job runs. After the job's
/// end, the caller that started the job calls end().
class Recorder {
 public:
  /// Requires: `ready` outlives the recorder.
  Recorder(const PreparedRun& ready, MetricsFile metrics);

  /// Shows and writes a job's progress. Returns false if the job is to stop: after Ctrl-C, or if a
  /// file cannot be written. On a cluster, `missing` names the dead nodes.
  [[nodiscard]] bool on_progress(const actor::Progress& progress, const std::string& missing = {});

  /// Prints a warning for people, even if the job is quiet.
  void warn(const std::string& message);

  /// Takes each evaluation, in order, with the states of the model that was evaluated. Returns
  /// false if the job is to stop: as on_progress(), and if patience is over.
  [[nodiscard]] bool on_evaluated(const actor::Progress& progress,
                                  const std::vector<core::RangeState>& states);

  /// Returns true once as many evaluations in a row as patience allows had no better test loss.
  [[nodiscard]] bool is_patience_over() const { return selection_.is_patience_over(); }

  /// Replaces the checkpoint and returns true. Returns false if no job could resume from the new
  /// one: no update was made, values are not finite, a range has no ledger, or the ranges of a bsp
  /// job are at different rounds.
  bool on_checkpoint(const std::vector<core::RangeState>& states);

  /// Writes the model that the job leaves, its report and the last line of the metrics. Returns how
  /// the job ended.
  [[nodiscard]] EndedJob end(const actor::Outcome& outcome, std::uint64_t workers_lost = 0);

 private:
  using States = std::vector<core::RangeState>;

  /// Returns whether no update was made for much longer than a step takes.
  [[nodiscard]] bool is_stalled(const actor::Progress& progress);
  /// Returns whether `result` is no error; keeps the first error.
  bool record_outcome(const Result<void>& result);
  void add_to_curves(const actor::Progress& progress);
  void save(const States& states, const KeptModel& kept);
  /// Returns the model that the job leaves: the best or the last one, or, if the job failed, the
  /// latest one whose values are finite.
  [[nodiscard]] States choose_model(const actor::Outcome& outcome, bool has_failed,
                                    KeptModel& kept) const;
  /// Adds the last figures to the curves and writes the page.
  void write_page(EndedJob& ended);
  /// Returns the latest of `last` and `recent_models_` whose values and metrics are finite; empty
  /// if no model is to be saved.
  [[nodiscard]] States latest_finite(const States& last) const;
  [[nodiscard]] bool has_finite_figures(const States& states) const;

  const PreparedRun& ready_;
  MetricsFile metrics_;
  Display display_;
  Curves curves_;
  ModelSelection selection_;
  /// Pairs of the workers' mean step and the test loss.
  std::vector<std::pair<double, double>> losses_;
  /// The latest number of updates.
  std::uint64_t updates_ = 0;
  /// When `updates_` last changed, since the start of the job.
  core::Time last_update_at_{};
  std::string error_;
  std::string saved_;
  std::string checkpoint_;
  /// The last two models that were evaluated, the older first.
  std::array<States, 2> recent_models_;
};

}  // namespace starling::program
