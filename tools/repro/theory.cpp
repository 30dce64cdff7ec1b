#include "starling/tools/repro/theory.hpp"

#include <cmath>

#include "starling/base/check.hpp"

namespace starling::program {
namespace {

/// Returns S, the factor with which the distribution of the lag sums to 1.
double scale(const LagTheory& theory, double a) {
  STARLING_CHECK(a > 0 && a < 1);
  const double share = std::pow(a, 1 / theory.beta);  // F(r)
  return (1 - a) / (share * (1 - a) + a - std::pow(a, theory.steps - theory.r + 1));
}

}  // namespace

double mean_lag_bound(const LagTheory& theory, double a) {
  const double r = theory.r;
  return scale(theory, a) * (r * (r + 1) / 2 + a * (r + 2) / std::pow(1 - a, 2));
}

double mean_squared_lag_bound(const LagTheory& theory, double a) {
  const double r = theory.r;
  return scale(theory, a) * (r * (r + 1) * (2 * r + 1) / 6 + a * (r * r + 4) / std::pow(1 - a, 3));
}

LagMinimum smallest_mean_lag_bound(const LagTheory& theory) {
  constexpr int intervals = 10000;
  LagMinimum minimum{.a = 0.5, .bound = mean_lag_bound(theory, 0.5)};
  for (int i = 1; i < intervals; ++i) {
    const double a = static_cast<double>(i) / intervals;
    if (const double bound = mean_lag_bound(theory, a); bound < minimum.bound) minimum = {a, bound};
  }
  return minimum;
}

}  // namespace starling::program
