/// A job as it was prepared, and what is shown, written and kept while it runs.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "starling/app/checkpoint.hpp"
#include "starling/app/curves.hpp"
#include "starling/app/display.hpp"
#include "starling/app/job.hpp"
#include "starling/app/metrics_file.hpp"
#include "starling/app/model_file.hpp"
#include "starling/app/report.hpp"

namespace starling::app {

/// A job that is ready to start: nothing in it can be refused any more.
struct Prepared {
  Job job;
  TrainAndTest data;
  std::shared_ptr<const AnyModel> model;
  Running running;
  ModelNotes notes;
  Agreement agreement;

  [[nodiscard]] const AnyData* test() const { return data.test ? &*data.test : nullptr; }
};

/// The job's observer calls it from one thread while the job runs, on_evaluation() from any; end()
/// is for who started the job, once it is over.
class Recorder {
 public:
  /// `ready` outlives it.
  Recorder(const Prepared& ready, MetricsFile metrics)
      : ready_(ready), metrics_(std::move(metrics)), display_(ready.job.quiet) {}

  /// False where the job is to stop: at Ctrl-C, and where a file cannot be written.
  /// `missing` names nodes that are dead, on a cluster.
  [[nodiscard]] bool on_progress(const live::Progress& progress, const std::string& missing = {});

  /// What people are to know, quiet or not.
  void warn(const std::string& message);

  /// Keeps the model, for the case that a later one is of no use.
  void on_evaluation(const std::vector<core::RangeState>& states);

  /// Replaces the checkpoint, but not by one that nobody can go on from: where no update was made,
  /// values are not finite or stand alone, or the ranges of a bulk-synchronous job stand at
  /// different rounds. False where it did not.
  bool on_checkpoint(const std::vector<core::RangeState>& states);

  /// Writes the last good model and the last of the metrics; says how all ended.
  [[nodiscard]] Ended end(const live::Outcome& outcome, std::uint64_t workers_lost = 0);

 private:
  using States = std::vector<core::RangeState>;

  /// True where no step was made for much longer than one takes.
  [[nodiscard]] bool stands(const live::Progress& progress);
  /// Keeps the first error; true where there is none.
  bool note(const Result<void>& result);
  void evaluated(const live::Progress& progress);
  void add_to_curves(const live::Progress& progress);
  void save(const States& states);
  /// Adds the last figures to the curves and writes the page.
  void write_page(Ended& ended);
  /// The latest of `last` and of what was kept whose values and figures are finite.
  [[nodiscard]] States latest_good(const States& last) const;
  [[nodiscard]] bool is_good(const States& states) const;
  [[nodiscard]] Weights weights_in(const States& states) const {
    return ready_.model->collect(ready_.running.options.job, states);
  }

  const Prepared& ready_;
  MetricsFile metrics_;
  Display display_;
  Curves curves_;
  std::size_t evaluations_ = 0;
  /// The test loss by steps of one worker.
  std::vector<std::pair<double, double>> losses_;
  /// The updates that were made, and when that was first seen.
  std::uint64_t updates_ = 0;
  core::Time moved_{};
  std::string error_;
  std::string saved_;
  std::string checkpoint_;
  std::mutex mutex_;
  /// The last two models that were evaluated, the older first.
  std::array<States, 2> kept_;
};

}  // namespace starling::app
