/// The program's commands, one function each, and what they share. A command returns its exit code.
/// If its input is wrong, it starts nothing and returns an error, for which the program exits with
/// bad_input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Exit codes of the program.
inline constexpr int done = 0;
inline constexpr int job_failed = 1;
inline constexpr int bad_input = 2;

/// Trains a model. `job_file` is the job file from which settings were read; empty if there was
/// none. Requires: each setting's key is one of job_keys().
[[nodiscard]] Result<int> train_command(const Registry& registry, const Settings& settings,
                                        const std::string& job_file);

struct EvaluateOptions {
  std::string model_file;
  /// True if the file may lack a checksum.
  bool accepts_missing_checksum = false;
  /// Empty: the data that the model was tested on.
  std::string data;
  /// The seed of generated data. Absent: the seed that the model was trained with.
  std::optional<std::uint64_t> seed = std::nullopt;
  /// predict only: the file to write; empty for stdout.
  std::string out;
  /// predict only: True if columns of probabilities, or of scores, are written beside the
  /// predictions.
  bool probabilities = false;
  bool scores = false;
  /// evaluate only: true if the metrics are printed as one JSON object.
  bool json = false;
  /// The device on which the model computes.
  models::Device device = {};
};
/// Prints the metrics of a saved model on data.
[[nodiscard]] Result<int> evaluate_command(const Registry& registry,
                                           const EvaluateOptions& options);
/// Writes the predictions of a saved model for data.
[[nodiscard]] Result<int> predict_command(const Registry& registry, const EvaluateOptions& options);

/// Simulates steps and barriers in virtual time. `job_file` and `settings` are as for
/// train_command, with the keys of sim/sim_keys.hpp too.
[[nodiscard]] Result<int> sim_command(const Registry& registry, const Settings& settings,
                                      const std::string& job_file);

/// Runs a job live, simulates it and compares the two. Returns job_failed if a figure of the live
/// run is outside its bounds (FigureComparison).
/// `job_file` and `settings` are as for train_command, with the keys of twin/twin_keys.hpp too.
[[nodiscard]] Result<int> twin_command(const Registry& registry, const Settings& settings,
                                       const std::string& job_file);

struct ReproOptions {
  std::string out = "psp.html";
  /// The folder of the report's data. Empty: a folder beside the report with the report's name, but
  /// with -data in place of its extension.
  std::string data;
  /// A folder for the report as a Markdown page with its pictures. Empty: no such page is written.
  std::string markdown;
  std::uint64_t seed = 1;
  /// The number of seeds for each experiment, counted up from `seed`.
  std::uint64_t seeds = 20;
  /// The number of runs at the same time; 0: one for each processor.
  std::size_t threads = 0;
  /// True if the experiments run fewer settings with less data.
  bool quick = false;
  bool quiet = false;
};
/// Runs every experiment that the PSP paper simulated, and writes a report.
[[nodiscard]] Result<int> repro_psp_command(const ReproOptions& options);

/// Runs the PSP paper's training live, and writes a report. Requires: settings with keys of
/// tools/repro/training_keys.hpp.
[[nodiscard]] Result<int> repro_psp_train_command(const Registry& registry,
                                                  const Settings& settings);

struct ChaosOptions {
  /// A range of seeds `A..B`, both included; empty for 1..1000.
  std::string seeds;
  /// The number of runs at the same time; 0: one for each processor.
  std::size_t threads = 0;
  /// The file of a scenario to run instead of seeds.
  std::string replay;
  /// The file to which the scenario of a failure is written; empty: chaos-SEED.txt.
  std::string out;
  bool json = false;
};
/// For each seed, simulates one replicated job under faults. Returns job_failed if an invariant
/// was violated.
[[nodiscard]] Result<int> chaos_command(const ChaosOptions& options);

struct InspectOptions {
  /// A source of data, or the file of a saved model.
  std::string what;
  std::uint64_t seed = 1;
  bool json = false;
};
/// Prints statistics of a data source, or the tensors and metadata of a saved model.
[[nodiscard]] Result<int> inspect_command(const Registry& registry, const InspectOptions& options);

/// Return a line for each barrier or model of the program, for the help, barriers_command() and
/// models_command().
[[nodiscard]] std::string barriers_list(const Registry& registry);
[[nodiscard]] std::string models_list(const Registry& registry);

/// Print the barriers or the models of the program.
[[nodiscard]] Result<int> barriers_command(const Registry& registry);
[[nodiscard]] Result<int> models_command(const Registry& registry);

struct EndedJob;
struct Job;
/// Prints the summary of a job that has ended, and its errors. Returns the exit code.
[[nodiscard]] int report(const EndedJob& ended, const Job& job);

/// Writes results to stdout and returns `code`. If they cannot be written, prints an error and
/// returns job_failed in place of `done`; every other `code` is returned unchanged.
[[nodiscard]] Result<int> write_stdout(const std::string& text, int code);

}  // namespace starling::program
