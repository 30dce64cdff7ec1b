/// The results of a report's experiments: claims with their status, pictures, and the words and
/// figures around them. Plain values and functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

enum class ClaimStatus {
  reproduced,
  /// Off by more than the published figure can be misread, but not by much.
  close,
  not_reproduced,
};
[[nodiscard]] std::string print(ClaimStatus status);

/// A published finding, beside what was found here.
struct Claim {
  std::string what;
  std::string published;
  std::string here;
  ClaimStatus status = ClaimStatus::not_reproduced;
};

struct ExperimentResults {
  std::vector<Claim> claims;
  std::vector<Plot> plots;

  /// Adds a plot; returns the picture that stands for it in a section until it is drawn.
  Picture add(Plot plot, const std::string& caption);
  /// Adds a claim that either holds or does not.
  void add(const std::string& what, const std::string& published, const std::string& here,
           bool holds);
  /// Adds a number that was read off a plot with an error of some 3 %: up to that error it is
  /// reproduced, up to 10 % close. `here` is a mean and its standard error.
  void add(const std::string& what, double published, const Summary& here);

  /// Counts the claims that are reproduced.
  [[nodiscard]] std::size_t reproduced() const;
};

/// "257.9 ± 0.2": the mean and its standard error.
[[nodiscard]] std::string with_error(const Summary& values, int digits = 1);

/// Means over the runs of the workers' mean steps, and of the standard deviation of their steps.
[[nodiscard]] Summary mean_steps(const SimRuns& runs);
[[nodiscard]] double mean_sd(const SimRuns& runs);

/// A row of progress_table(), named `label`: a world's progress with its standard error, spread,
/// waiting, messages.
struct WorldRow {
  std::string label;
  World world;
};
[[nodiscard]] TextTable progress_table(const ExperimentRunner& runner, const std::string& head,
                                       const std::vector<WorldRow>& rows);

/// A curve for each barrier over a quantity that is swept: mean steps with standard errors.
/// `world` makes the world of a barrier and a value.
struct Sweep {
  std::vector<std::string> barriers;
  std::vector<double> values;
  World (*world)(const std::string& barrier, double value);
};
void want(ExperimentRunner& runner, const Sweep& sweep);
[[nodiscard]] std::vector<Series> sweep_series(const ExperimentRunner& runner, const Sweep& sweep);
/// A row for each value, a column for each barrier: "mean ± error (sd, min-max)".
[[nodiscard]] TextTable sweep_table(const ExperimentRunner& runner, const std::string& head,
                                    const Sweep& sweep, const std::string& unit);

}  // namespace starling::program
