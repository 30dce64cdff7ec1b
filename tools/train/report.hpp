/// Prints a job's progress line, its summary, and the lines of `--metrics`, from measured values
/// only. Plain functions of values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "starling/actor/job/job.hpp"
#include "starling/tools/job/job.hpp"

namespace starling::program {

/// A job as it runs.
struct Running {
  /// With epochs turned into steps, and with all defaults filled in.
  actor::TrainOptions options;
  std::string data;
  std::string data_shape;
  std::string model;
  ElementType element_type = ElementType::float32;
  std::size_t train_samples = 0;
  std::size_t test_samples = 0;
  core::Step steps_per_epoch = 1;
  /// True where the schedule is left to the model's recipe.
  bool has_default_schedule = false;
  /// How features and targets were scaled; empty where they were not.
  std::string scale{};
  /// The updates of all workers before this run, where the job resumed from a checkpoint.
  std::uint64_t updates_before = 0;
  /// "cpu" or "cuda:0".
  std::string device = "cpu";
  /// Its number on a cluster, and its name there; empty elsewhere.
  std::string id{};
  std::string name{};
  /// A shorter text for a long `model`: the file of a net, or the beginning of the text. Empty:
  /// `model` is short.
  std::string short_model{};

  [[nodiscard]] const std::string& model_name() const {
    return short_model.empty() ? model : short_model;
  }
};

/// The model that a job leaves.
struct KeptModel {
  Keep which = Keep::last;
  /// The workers' mean step when it was read.
  double step = 0;
  /// Its figures, where it is the best.
  models::Metrics train{};
  models::Metrics test{};
};

/// A job that has ended.
struct Ended {
  const Running& job;
  const actor::Outcome& outcome;
  std::optional<double> normalised_error = std::nullopt;
  bool interrupted = false;
  KeptModel kept{};
  /// Step and loss of the model with the smallest test loss, where any was tested.
  std::optional<std::pair<double, double>> best{};
  /// How many evaluations without a better loss ended the job; 0: something else did.
  std::size_t patience = 0;
  /// True where there was a model worth saving.
  bool has_model = false;
  /// True where its last model is in all files that were asked for, or is not worth saving.
  bool is_kept = false;
  /// On a cluster: the workers that died or left before the end.
  std::uint64_t workers_lost = 0;
  /// Files that were written.
  std::string saved{};
  std::string checkpoint{};
  std::string report{};
  /// Sentences for people about the model; see advice().
  std::vector<std::string> advice{};
  /// Why it failed, empty if it did not.
  std::string error{};
};

/// "24000 rows, 784 features, 10 classes; 6000 to test on; 0.3 s".
[[nodiscard]] std::string loaded_text(const TrainAndTest& data, std::chrono::nanoseconds took);

/// Returns one line: elapsed time, speed, spread, waiting share, loss, test figures, time to go.
/// Where no step is made any more, `stands_for` names the nodes that the job waits for, if they are
/// known, and the line has no time to the last step.
[[nodiscard]] std::string progress_line(const Running& job, const actor::Progress& progress,
                                        const std::optional<std::string>& stands_for = {});

/// A table for people.
[[nodiscard]] std::string summary_table(const Ended& ended);

/// One JSON object on one line.
[[nodiscard]] std::string summary_json(const Ended& ended);

/// Lines of `--metrics`: one JSON object each.
[[nodiscard]] std::string progress_json(const Running& job, const actor::Progress& progress);
[[nodiscard]] std::string evaluation_json(const Running& job, const actor::Progress& progress);
[[nodiscard]] std::string end_json(const Ended& ended);

}  // namespace starling::program
