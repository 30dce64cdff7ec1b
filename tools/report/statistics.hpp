/// Computes statistics of repeated measurements: means, medians, standard errors and confidence
/// intervals. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace starling::program {

/// Statistics of a sample of values.
struct Summary {
  std::size_t count = 0;
  double mean = 0;
  /// The standard deviation of a sample (divided by count - 1); 0 for fewer than two values.
  double sd = 0;
  double min = 0;
  double max = 0;
};

/// Summarises the values; all fields are 0 if there are none.
[[nodiscard]] Summary compute_statistics(std::span<const double> values);

/// Returns the middle value, or the mean of the two middle ones. Requires: at least one value.
[[nodiscard]] double median(std::vector<double> values);

/// Returns the standard error of the mean: sd / sqrt(count); 0 for fewer than two values.
[[nodiscard]] double standard_error(const Summary& values);

/// Returns half the width of the 95 % confidence interval of the mean, by Student's t distribution;
/// 0 for fewer than two values, which have no interval.
[[nodiscard]] double confidence_95(const Summary& values);

/// Returns the t for which a value of Student's t distribution with `degrees` degrees of freedom
/// lies in [-t, t] with probability 0.95. Requires: degrees > 0.
[[nodiscard]] double student_t_95(std::size_t degrees);

}  // namespace starling::program
