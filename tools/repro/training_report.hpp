/// Makes the report of the PSP paper's training run: its text, tables and plots, and its figures
/// for other programs. Plain functions of values; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/repro/experiment_results.hpp"
#include "starling/tools/repro/training.hpp"
#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/report.hpp"

namespace starling::program {

/// The names of the plots, which are the names of their files without extensions.
inline constexpr const char* over_updates_plot = "psp-train-updates";
inline constexpr const char* over_time_plot = "psp-train-time";
inline constexpr const char* one_seed_plot = "psp-train-one-seed";

/// The runs of a training, and the options and the job that they had.
struct Training {
  const TrainingOptions& options;
  const ResolvedJob& job;
  const std::vector<BarrierRuns>& runs;
};

/// Returns the report, and adds the claims and the plots to `results`. The pictures of the report
/// are not drawn yet.
[[nodiscard]] Document training_document(const Training& training, ExperimentResults& results);

/// Returns CSV, a row for each barrier and seed.
[[nodiscard]] std::string training_runs_csv(const Training& training);
/// Returns CSV, a row for each barrier, seed and instant.
[[nodiscard]] std::string training_curves_csv(const Training& training);
/// Returns one JSON object: what was trained, the claims, and for each barrier its means.
[[nodiscard]] std::string training_json(const Training& training, const ExperimentResults& results);

}  // namespace starling::program
