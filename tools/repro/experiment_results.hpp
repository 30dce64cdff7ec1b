/// The results of a report's experiments: claims with their status, plots, and the tables and texts
/// that they are shown in. Plain values and functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

enum class ClaimStatus {
  reproduced,
  /// The difference is larger than an error in reading the published figure, but not much larger.
  close,
  not_reproduced,
};
[[nodiscard]] std::string print(ClaimStatus status);

/// A published finding, and what was found here.
struct Claim {
  /// The quantity or the statement that is compared.
  std::string finding;
  std::string published;
  std::string here;
  ClaimStatus status = ClaimStatus::not_reproduced;
};

struct ExperimentResults {
  std::vector<Claim> claims;
  std::vector<Plot> plots;

  /// Adds a plot. Returns the picture that a section shows; the plot is drawn later.
  Picture add(Plot plot, const std::string& caption);
  /// Adds a claim that is either reproduced or not.
  void add(const std::string& finding, const std::string& published, const std::string& here,
           bool is_reproduced);
  /// Adds a claim about a number that was read off a published plot with an error of some 3 %: a
  /// mean within 3 % of it is reproduced, within 10 % close.
  void add(const std::string& finding, double published, const Summary& here);

  /// Counts the claims that are reproduced.
  [[nodiscard]] std::size_t reproduced() const;
};

/// Returns a mean and its standard error: "257.9 ± 0.2".
[[nodiscard]] std::string with_error(const Summary& values, int digits = 1);

/// Return the means over the runs of the workers' mean steps, and of the standard deviation of
/// their steps.
[[nodiscard]] Summary mean_steps(const SimRuns& runs);
[[nodiscard]] double mean_sd(const SimRuns& runs);

/// A row of progress_table().
struct SettingRow {
  std::string label;
  SimulatedSetting setting;
};
/// Returns a table of settings: the progress of each with its standard error, its spread, its share
/// of waiting, and its messages. `head` is the title of the column of labels.
[[nodiscard]] TextTable progress_table(const ExperimentRunner& runner, const std::string& head,
                                       const std::vector<SettingRow>& rows);

/// Settings in which a quantity takes each of `values`, under each of `barriers`.
struct Sweep {
  std::vector<std::string> barriers;
  std::vector<double> values;
  /// Returns the setting of a barrier and a value.
  SimulatedSetting (*setting)(const std::string& barrier, double value);
};
/// Asks the runner for the runs of all settings of a sweep.
void request(ExperimentRunner& runner, const Sweep& sweep);
/// Returns a curve for each barrier: mean steps with standard errors over the values.
[[nodiscard]] std::vector<Series> sweep_series(const ExperimentRunner& runner, const Sweep& sweep);
/// Returns a table with a row for each value and a column for each barrier. A cell is "mean ± error
/// (sd, min-max)".
[[nodiscard]] TextTable sweep_table(const ExperimentRunner& runner, const std::string& head,
                                    const Sweep& sweep, const std::string& unit);

}  // namespace starling::program
