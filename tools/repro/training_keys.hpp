/// The keys of `starling repro psp-train`: keys of a job, and its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

[[nodiscard]] const std::vector<KeyForm>& training_keys();
/// Returns the end of the command's help.
[[nodiscard]] std::string training_footer();

struct TrainingOptions {
  /// Settings of the job that is trained, defaults filled in, with the first of the barriers.
  Settings job{};
  std::vector<barrier::Barrier> barriers{};
  /// Runs of each barrier, under the seeds seed, seed + 1, ...
  std::uint64_t seed = 1;
  std::uint64_t seeds = 5;
  /// Evaluations of a run, at equal instants.
  std::uint64_t evals = 30;
  /// Test samples of an evaluation, at most.
  std::uint64_t samples = 500;
  /// The folder of the report.
  std::string out = "psp-train";
  /// A folder for the report as a page of Markdown with its pictures; empty for none.
  std::string markdown{};
  bool quiet = false;
};

/// Reads the options. Refuses settings that no barrier could run with, the first bad setting with
/// its place. Requires: settings of known keys.
[[nodiscard]] Result<TrainingOptions> make_training(const Settings& settings,
                                                    const Registry& registry);

/// Prints the flags that ask for the same again, but for where the report goes.
[[nodiscard]] std::string print(const TrainingOptions& options);

}  // namespace starling::program
