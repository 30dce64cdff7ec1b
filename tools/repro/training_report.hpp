/// Makes the report of the PSP paper's training run: its text, tables and plots, and the CSV and
/// JSON for other programs. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/repro/experiment_results.hpp"
#include "starling/tools/repro/training.hpp"
#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The names of the plots, which are also the names of their files without extensions.
inline constexpr const char* over_updates_plot = "psp-train-updates";
inline constexpr const char* over_time_plot = "psp-train-time";
inline constexpr const char* one_seed_plot = "psp-train-one-seed";

/// All runs of a report, and the options and the job with which they were made.
struct Training {
  const TrainingOptions& options;
  const ResolvedJob& job;
  const std::vector<BarrierRuns>& runs;
};

/// Returns the report, whose pictures have no SVG yet, and adds its claims and plots to `results`.
[[nodiscard]] Document training_document(const Training& training, ExperimentResults& results);

/// Returns CSV with a row for each barrier and seed.
[[nodiscard]] std::string training_runs_csv(const Training& training);
/// Returns CSV with a row for each barrier, seed and instant.
[[nodiscard]] std::string training_curves_csv(const Training& training);
/// Returns one JSON object: the flags, the model, the claims, and for each barrier the means of its
/// figures.
[[nodiscard]] std::string training_json(const Training& training, const ExperimentResults& results);

}  // namespace starling::program
