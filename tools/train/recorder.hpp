/// A job as it was prepared, and the recorder that shows, writes and keeps its results while it
/// runs.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/files/metrics_file.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/selection.hpp"
#include "starling/tools/program/display.hpp"
#include "starling/tools/train/checkpoint.hpp"
#include "starling/tools/train/curves.hpp"
#include "starling/tools/train/model_file.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// A job that is ready to start: nothing in it can be refused any more.
struct Prepared {
  Job job;
  TrainAndTest data;
  std::shared_ptr<const AnyModel> model;
  Running running;
  ModelNotes notes;
  Agreement agreement;

  [[nodiscard]] const AnyData* test() const { return data.test ? &*data.test : nullptr; }
  [[nodiscard]] Weights weights_in(const std::vector<core::RangeState>& states) const {
    return model->collect(running.options.job, states);
  }
  /// The figures of an evaluation on the test data. Requires: there are test data.
  [[nodiscard]] models::Metrics tested(const std::vector<core::RangeState>& states) const;
};

/// Records a job. The job's observer calls it from one thread while the job runs; the caller that
/// started the job calls end() once it is over.
class Recorder {
 public:
  /// `ready` outlives it.
  Recorder(const Prepared& ready, MetricsFile metrics);

  /// Takes a job's progress. False where the job is to stop: at Ctrl-C, and where a file cannot be
  /// written. `missing` names nodes that are dead, on a cluster.
  [[nodiscard]] bool on_progress(const actor::Progress& progress, const std::string& missing = {});

  /// Prints a warning for people, also where the job is quiet.
  void warn(const std::string& message);

  /// Takes every evaluation, in order, with the model that was evaluated. False where the job is to
  /// stop: as on_progress(), and where patience is at its end.
  [[nodiscard]] bool on_evaluated(const actor::Progress& progress,
                                  const std::vector<core::RangeState>& states);

  /// True once as many evaluations in a row as patience allows had no better test loss.
  [[nodiscard]] bool is_patience_over() const { return selection_.is_enough(); }

  /// Replaces the checkpoint, unless no job could resume from the new one: where no update was
  /// made, values are not finite or lack a ledger, or the ranges of a bulk-synchronous job stand at
  /// different rounds. False where it did not.
  bool on_checkpoint(const std::vector<core::RangeState>& states);

  /// Writes the model that the job leaves, its report and the last line of the metrics; returns how
  /// the job ended.
  [[nodiscard]] Ended end(const actor::Outcome& outcome, std::uint64_t workers_lost = 0);

 private:
  using States = std::vector<core::RangeState>;

  /// True where no update was made for much longer than a step takes.
  [[nodiscard]] bool stands(const actor::Progress& progress);
  /// Keeps the first error; true where there is none.
  bool note(const Result<void>& result);
  void add_to_curves(const actor::Progress& progress);
  void save(const States& states, const KeptModel& kept);
  /// Returns the model that the job leaves: the best or the last one, and a good one where the job
  /// failed.
  [[nodiscard]] States choose(const actor::Outcome& outcome, bool has_failed,
                              KeptModel& kept) const;
  /// Adds the last figures to the curves and writes the page.
  void write_page(Ended& ended);
  /// Returns the latest of `last` and `kept_` whose values and figures are finite; empty where no
  /// model is to be saved.
  [[nodiscard]] States latest_good(const States& last) const;
  [[nodiscard]] bool is_good(const States& states) const;

  const Prepared& ready_;
  MetricsFile metrics_;
  Display display_;
  Curves curves_;
  Selection selection_;
  /// The test loss by steps of one worker.
  std::vector<std::pair<double, double>> losses_;
  /// The updates that were made, and when that was first seen.
  std::uint64_t updates_ = 0;
  core::Time moved_{};
  std::string error_;
  std::string saved_;
  std::string checkpoint_;
  /// The last two models that were evaluated, the older first.
  std::array<States, 2> kept_;
};

}  // namespace starling::program
