/// The results of a report's experiments: claims with their status, plots, and the tables and texts
/// that show them. Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

/// Says how closely the number found here agrees with the published claim.
enum class ClaimStatus {
  reproduced,
  /// The number found here differs from the published one by more than 3 %, the error of a number
  /// that is read off a plot, but by at most 10 %.
  close,
  not_reproduced,
};
[[nodiscard]] std::string print(ClaimStatus status);

/// A published finding, compared with the result of this report.
struct Claim {
  /// The quantity or the statement that is compared.
  std::string finding;
  /// Its published value, and its value in this report.
  std::string published;
  std::string here;
  ClaimStatus status = ClaimStatus::not_reproduced;
};

struct ExperimentResults {
  std::vector<Claim> claims;
  std::vector<Plot> plots;

  /// Adds a plot, which is drawn later. Returns the picture to put into a section, with no SVG yet.
  Picture add(Plot plot, const std::string& caption);
  /// Adds a claim that is either reproduced or not.
  void add(const std::string& finding, const std::string& published, const std::string& here,
           bool is_reproduced);
  /// Adds a claim about a number that was read off a published plot with an error of about 3 %. The
  /// claim is reproduced if the mean is within 3 % of this number, and close if it is within 10 %.
  void add(const std::string& finding, double published, const Summary& here);

  /// Returns the number of reproduced claims.
  [[nodiscard]] std::size_t reproduced() const;
};

/// Returns a mean and its standard error: "257.9 ± 0.2".
[[nodiscard]] std::string with_error(const Summary& values, int digits = 1);

/// Summarises over the runs the mean of the workers' steps.
[[nodiscard]] Summary mean_steps(const SimRuns& runs);
/// Returns the mean over the runs of the standard deviation of the workers' steps.
[[nodiscard]] double mean_sd(const SimRuns& runs);

/// A row of progress_table().
struct SettingRow {
  std::string label;
  SimulatedSetting setting;
};
/// Returns a table with a row for each setting: the mean steps with their standard error, the
/// spread of the steps, the share of time spent waiting, and the messages for each step. `head` is
/// the title of the column of labels.
[[nodiscard]] TextTable progress_table(const ExperimentRunner& runner, const std::string& head,
                                       const std::vector<SettingRow>& rows);

/// Settings that differ in the barrier and in one quantity: one for each of `barriers` and
/// `values`.
struct Sweep {
  std::vector<std::string> barriers;
  std::vector<double> values;
  /// Returns the setting of a barrier and a value.
  SimulatedSetting (*setting)(const std::string& barrier, double value);
};
/// Asks the runner for the runs of all settings of a sweep.
void request(ExperimentRunner& runner, const Sweep& sweep);
/// Returns a curve for each barrier: the mean steps, with standard errors, over the values.
[[nodiscard]] std::vector<Series> sweep_series(const ExperimentRunner& runner, const Sweep& sweep);
/// Returns a table with a row for each value and a column for each barrier. A cell is "mean ±
/// standard error (sd, min-max)" of the steps. `unit` follows each value in the first column, whose
/// title is `head`.
[[nodiscard]] TextTable sweep_table(const ExperimentRunner& runner, const std::string& head,
                                    const Sweep& sweep, const std::string& unit);

}  // namespace starling::program
