/// The program's commands, one function each. A function returns an exit code, or an error of its
/// input: then nothing was started, and the code is bad_input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/base/result.hpp"
#include "starling/models/device.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

inline constexpr int done = 0;
inline constexpr int job_failed = 1;
inline constexpr int bad_input = 2;

/// `job_file` is where settings were read, empty for none. Requires: settings of known keys.
[[nodiscard]] Result<int> train_command(const Registry& registry, const Settings& settings,
                                        const std::string& job_file);

struct EvaluateOptions {
  std::string model_file;
  /// True where the file may be without a checksum.
  bool trusts_file = false;
  /// Empty: the data that the model was tested on.
  std::string data;
  /// The seed of generated data; absent: the one that the model was trained with.
  std::optional<std::uint64_t> seed = std::nullopt;
  /// predict only: the file to write; empty for stdout.
  std::string out;
  /// predict only: the columns to write beside the prediction.
  bool probabilities = false;
  bool scores = false;
  bool json = false;
  /// Where the model is computed.
  models::Device device = {};
};
[[nodiscard]] Result<int> evaluate_command(const Registry& registry,
                                           const EvaluateOptions& options);
[[nodiscard]] Result<int> predict_command(const Registry& registry, const EvaluateOptions& options);

/// Simulates steps and barriers in virtual time. `job_file` and `settings` are as for
/// train_command, with the keys of sim/sim_keys.hpp too.
[[nodiscard]] Result<int> sim_command(const Registry& registry, const Settings& settings,
                                      const std::string& job_file);

/// Runs a job live and simulates it: job_failed where a figure is not as simulated. `job_file` and
/// `settings` are as for train_command, with the keys of twin/twin_keys.hpp too.
[[nodiscard]] Result<int> twin_command(const Registry& registry, const Settings& settings,
                                       const std::string& job_file);

struct ReproOptions {
  std::string out = "psp.html";
  /// The folder of the report's data; empty: beside it, its name without its ending and -data.
  std::string data;
  /// A folder for the report as a page of Markdown with its pictures; empty for none.
  std::string markdown;
  std::uint64_t seed = 1;
  std::uint64_t seeds = 20;
  /// Runs at the same time; 0: one for each processor.
  std::size_t threads = 0;
  /// Fewer settings and less data.
  bool quick = false;
  bool quiet = false;
};
/// Runs every experiment that the PSP paper simulated, and writes a report.
[[nodiscard]] Result<int> repro_psp_command(const ReproOptions& options);

/// Runs the PSP paper's training live, and writes a report. Requires: settings of keys of
/// tools/repro/training_keys.hpp.
[[nodiscard]] Result<int> repro_psp_train_command(const Registry& registry,
                                                  const Settings& settings);

struct ChaosOptions {
  /// `A..B`, both run; empty for 1..1000.
  std::string seeds;
  /// Runs at the same time; 0: as many as there are cores.
  std::size_t threads = 0;
  /// A scenario's file, to be run in place of seeds.
  std::string replay;
  /// The file for the scenario of a failure; empty: chaos-SEED.txt.
  std::string out;
  bool json = false;
};
/// Runs replicated jobs under simulated faults, by seed. job_failed where an invariant broke.
[[nodiscard]] Result<int> chaos_command(const ChaosOptions& options);

struct InspectOptions {
  /// A source of data, or a saved model.
  std::string what;
  std::uint64_t seed = 1;
  bool json = false;
};
/// Prints the figures of a data source or a saved model.
[[nodiscard]] Result<int> inspect_command(const Registry& registry, const InspectOptions& options);

/// Returns a line for each barrier or model of the program, as the commands and the help of train
/// show them.
[[nodiscard]] std::string barriers_list(const Registry& registry);
[[nodiscard]] std::string models_list(const Registry& registry);

[[nodiscard]] Result<int> barriers_command(const Registry& registry);
[[nodiscard]] Result<int> models_command(const Registry& registry);

struct Ended;
struct Job;
/// Prints how a job has ended, and returns the exit code that follows from it.
[[nodiscard]] int report(const Ended& ended, const Job& job);

/// Writes results to stdout. Returns `code`, or job_failed with a message where writing fails.
[[nodiscard]] Result<int> write_stdout(const std::string& text, int code);

/// Prints "<program's name>: <message>" on stderr.
void print_error(const std::string& message);

}  // namespace starling::program
