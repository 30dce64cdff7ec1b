/// Returns the texts of a job's progress line, its summary and the lines of `--metrics`. Shows only
/// measured values. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "starling/actor/job/job.hpp"
#include "starling/tools/job/job.hpp"

namespace starling::program {

/// A job as it runs, with all defaults replaced by values.
struct ResolvedJob {
  /// The options, with epochs converted to steps.
  actor::TrainOptions options;
  /// The source of the data, the training data as describe() prints them, and the model as text.
  std::string data;
  std::string data_shape;
  std::string model;
  /// As AnyModel::learns_by_gradients().
  bool learns_by_gradients = true;
  ElementType element_type = ElementType::float32;
  std::size_t train_samples = 0;
  std::size_t test_samples = 0;
  core::Step steps_per_epoch = 1;
  /// True if the model's recipe decides the schedule.
  bool has_default_schedule = false;
  /// How features and targets were scaled; empty if they were not.
  std::string scale{};
  /// The updates that the checkpoint contains from which the job resumed; 0 without one.
  std::uint64_t updates_before = 0;
  /// The sum of the steps with which the workers of this run began; 0 without a checkpoint.
  /// actor::Progress::updates begins at this sum, which differs from `updates_before` if there were
  /// other workers before.
  std::uint64_t steps_before = 0;
  /// "cpu" or "cuda:0".
  std::string device = "cpu";
  /// The job's number and its name on a cluster; empty in one process.
  std::string id{};
  std::string name{};
  /// A shorter name for the model if the text `model` is long: the file of the net, or the
  /// beginning of the text; else empty.
  std::string short_model{};

  [[nodiscard]] const std::string& model_name() const {
    return short_model.empty() ? model : short_model;
  }
};

/// The model that a job saves and reports.
struct KeptModel {
  Keep which = Keep::last;
  /// The workers' mean step when the model was read.
  double step = 0;
  /// The model's metrics if it is the best model; empty if it is the last one, whose metrics are in
  /// the job's outcome.
  models::Metrics train{};
  models::Metrics test{};
};

/// The fates of the workers of a job on nodes.
struct WorkerFates {
  /// The workers that were in the job at its end, and had made their last step.
  std::uint64_t finished = 0;
  /// The workers of nodes that left.
  std::uint64_t left = 0;
  /// The workers of nodes that died, or were declared dead. A worker whose node came back counts
  /// here, and again for the way in which it ended then.
  std::uint64_t died = 0;
  /// True if all workers that finished have equal copies of the model, to the last bit; nullopt if
  /// that is not known, or if the exchange does not keep the copies equal.
  std::optional<bool> have_equal_copies = std::nullopt;

  [[nodiscard]] std::uint64_t lost() const { return left + died; }
};

/// A job that has ended.
struct EndedJob {
  const ResolvedJob& job;
  const actor::Outcome& outcome;
  /// AnyModel::normalised_error() of the model in `kept`; absent if the model has none, or if the
  /// job failed.
  std::optional<double> normalised_error = std::nullopt;
  /// True if a signal, such as that of Ctrl-C, ended the job.
  bool interrupted = false;
  KeptModel kept{};
  /// Step and loss of the model with the smallest test loss; absent if no model was tested.
  std::optional<std::pair<double, double>> best{};
  /// How many evaluations without a better loss ended the job; 0 if something else ended it.
  std::size_t patience = 0;
  /// True if the job has a model to save and report.
  bool has_model = false;
  /// True if nothing is left to save: the model and the checkpoint were written to the files that
  /// the user named, or the last model has no update, or values that are not finite.
  bool has_saved_all = false;
  /// All zeros in one process.
  WorkerFates workers{};
  /// The paths of the files that were written; each is empty if its file was not written.
  std::string saved{};
  std::string checkpoint{};
  std::string report{};
  std::string trace{};
  /// Sentences for people about the model; see find_advice().
  std::vector<std::string> advice{};
  /// Why the job failed; empty if it did not.
  std::string error{};
};

/// Returns "24000 rows, 784 features, 10 classes; 6000 to test on; 0.3 s".
[[nodiscard]] std::string loaded_text(const TrainAndTest& data, std::chrono::nanoseconds took);

/// Returns the updates of the whole job, including those before it resumed.
[[nodiscard]] std::uint64_t total_updates(const ResolvedJob& job, const actor::Progress& progress);

/// Returns one line: elapsed time, speed, spread, waiting share, loss, test metrics, remaining
/// time. `awaited_nodes` is absent unless the job is stalled. It names the nodes for which the job
/// waits; empty if they are not known. The remaining time of a stalled job depends only on
/// its limit of time.
[[nodiscard]] std::string progress_line(const ResolvedJob& job, const actor::Progress& progress,
                                        const std::optional<std::string>& awaited_nodes = {});

/// Returns the summary as a table for people.
[[nodiscard]] std::string summary_table(const EndedJob& ended);

/// Returns the summary as one JSON object on one line.
[[nodiscard]] std::string summary_json(const EndedJob& ended);

/// Return lines of `--metrics`: one JSON object each.
[[nodiscard]] std::string progress_json(const ResolvedJob& job, const actor::Progress& progress);
[[nodiscard]] std::string evaluation_json(const ResolvedJob& job, const actor::Progress& progress);
[[nodiscard]] std::string end_json(const EndedJob& ended);

}  // namespace starling::program
