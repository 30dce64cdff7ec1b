#include "starling/tools/report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "starling/base/check.hpp"

namespace starling::program {
namespace {

/// Returns the integral of cos(x)^power from 0 to `end`, by Simpson's rule.
double cosine_integral(double power, double end) {
  constexpr int intervals = 400;
  const double step = end / intervals;
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double weight = i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * std::pow(std::max(0.0, std::cos(i * step)), power);
  }
  return sum * step / 3;
}

}  // namespace

Summary compute_statistics(std::span<const double> values) {
  Summary summary;
  if (values.empty()) return summary;
  summary.count = values.size();
  const auto n = static_cast<double>(values.size());
  // Sums differences from the first value, so that the mean of equal values is exactly this value.
  const double first = std::isfinite(values[0]) ? values[0] : 0;
  for (const double value : values) summary.mean += value - first;
  summary.mean = first + summary.mean / n;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  if (summary.count > 1) summary.sd = std::sqrt(squares / (n - 1));
  const auto [min, max] = std::ranges::minmax(values);
  summary.min = min;
  summary.max = max;
  return summary;
}

double median(std::vector<double> values) {
  STARLING_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double standard_error(const Summary& values) {
  return values.count > 1 ? values.sd / std::sqrt(static_cast<double>(values.count)) : 0;
}

double confidence_95(const Summary& values) {
  return values.count > 1 ? student_t_95(values.count - 1) * standard_error(values) : 0;
}

// With t = sqrt(n) tan(x) the density of Student's t with n degrees of freedom becomes
// cos(x)^(n-1), up to a factor that cancels in the ratio of two integrals.
double student_t_95(std::size_t degrees) {
  STARLING_CHECK(degrees > 0);
  const auto n = static_cast<double>(degrees);
  double low = 0;
  // The largest angle that matters: the integral beyond it is negligible for every `degrees`.
  double high = std::min(std::numbers::pi / 2, 40 / std::sqrt(n));
  const double whole = cosine_integral(n - 1, high);
  const double most = high;
  while (high - low > 1e-13 * most) {
    const double middle = (low + high) / 2;
    (cosine_integral(n - 1, middle) < 0.95 * whole ? low : high) = middle;
  }
  return std::sqrt(n) * std::tan(low);
}

}  // namespace starling::program
