/// Theory of the lag under PSP (Wang, Catterall, Mortier, arXiv 1709.07772): bounds on the means of
/// the lag and of its square over the workers. Pure functions; thread-safe.
///
/// Let r be the staleness, F the distribution of the lag and beta the sample size. Then a =
/// F(r)^beta is the probability that no worker of a sample lags more than r. Over T steps:
///
///     S = (1-a) / (F(r)(1-a) + a - a^(T-r+1))
///     mean lag          <= S (r(r+1)/2 + a(r+2)/(1-a)^2)
///     mean squared lag  <= S (r(r+1)(2r+1)/6 + a(r^2+4)/(1-a)^3)
#pragma once

#include <cstddef>

namespace starling::program {

/// The parameters of the bounds.
struct LagTheory {
  double r = 4;
  double beta = 1;
  /// T of the formulas.
  double steps = 10000;
};

/// Returns the bound on the mean lag. Requires: 0 < a < 1.
[[nodiscard]] double mean_lag_bound(const LagTheory& theory, double a);

/// Returns the bound on the mean squared lag. Do not rely on it for small `a`: as a goes to 0, it
/// falls below the exact mean. Requires: 0 < a < 1.
[[nodiscard]] double mean_squared_lag_bound(const LagTheory& theory, double a);

/// The value of `a` at which the bound on the mean lag is smallest, and that bound.
struct LagMinimum {
  double a = 0;
  double bound = 0;
};
/// Searches `a` in steps of 0.0001.
[[nodiscard]] LagMinimum smallest_mean_lag_bound(const LagTheory& theory);

}  // namespace starling::program
