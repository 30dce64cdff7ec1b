/// The options of `starling repro psp-train`: some of those of a training job, and its own.
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

[[nodiscard]] const std::vector<KeyDescription>& training_keys();
/// Returns the end of the command's help.
[[nodiscard]] std::string training_footer();

struct TrainingOptions {
  /// The settings of the training job, including the defaults of this command and the first of the
  /// barriers.
  Settings job{};
  std::vector<barrier::Barrier> barriers{};
  /// The first seed and the number of seeds: each barrier runs once under each of `seed`, `seed` +
  /// 1, ...
  std::uint64_t seed = 1;
  std::uint64_t seeds = 5;
  /// The number of evaluations of a run, at equally spaced instants.
  std::uint64_t evals = 30;
  /// The number of test samples of an evaluation; all test samples if there are fewer.
  std::uint64_t samples = 500;
  /// The folder of the report.
  std::string out = "psp-train";
  /// The folder for the report as a page of Markdown with its pictures; empty for none.
  std::string markdown{};
  bool quiet = false;
};

/// Parses the settings. Returns an Error with the location of the first setting that is wrong, or
/// with which a barrier cannot run. Requires: each setting's key is one of training_keys().
[[nodiscard]] Result<TrainingOptions> parse_training_options(const Settings& settings,
                                                             const Registry& registry);

/// Prints the flags with which the command makes the same report again, without those for its
/// files.
[[nodiscard]] std::string print(const TrainingOptions& options);

}  // namespace starling::program
