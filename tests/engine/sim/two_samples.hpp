/// Statistical tests of whether two samples have the same distribution. Each returns the p-value:
/// the probability that samples of one distribution differ at least as much. The callers' seeds are
/// fixed, so a test that passes once always passes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace starling::sim {

/// The two-sample test of Kolmogorov and Smirnov, by the asymptotic distribution with Stephens'
/// correction (Press et al., Numerical Recipes, section 14.3).
inline double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  double distance = 0;
  /// The share of a sample that is at most x.
  const auto cumulative_share = [](const std::vector<double>& sorted, double x) {
    return static_cast<double>(std::ranges::upper_bound(sorted, x) - sorted.begin()) /
           static_cast<double>(sorted.size());
  };
  for (const auto* sample : {&a, &b})
    for (const double x : *sample)
      distance = std::max(distance, std::abs(cumulative_share(a, x) - cumulative_share(b, x)));
  const double root = std::sqrt(n * m / (n + m));
  const double lambda = (root + 0.12 + 0.11 / root) * distance;
  if (lambda < 0.3) return 1;
  double p = 0;
  for (int k = 1; k <= 100; ++k)
    p += (k % 2 == 1 ? 2 : -2) * std::exp(-2 * lambda * lambda * k * k);
  return std::clamp(p, 0.0, 1.0);
}

/// Pearson's chi-square test for two samples of counts. Neighbouring values are combined until a
/// cell has 20 counts. The tail is approximated by Wilson and Hilferty's normal deviate (PNAS
/// 1931).
inline double chi_square(const std::vector<double>& a, const std::vector<double>& b) {
  std::map<double, std::pair<double, double>> counts;
  for (const double x : a) ++counts[x].first;
  for (const double x : b) ++counts[x].second;
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  std::vector<std::pair<double, double>> cells{{0, 0}};
  for (const auto& [value, count] : counts) {
    if (cells.back().first + cells.back().second >= 20) cells.emplace_back(0, 0);
    cells.back().first += count.first;
    cells.back().second += count.second;
  }
  if (cells.size() < 2) return 1;
  double statistic = 0;
  for (const auto& [x, y] : cells) {
    const double difference = x * std::sqrt(m / n) - y * std::sqrt(n / m);
    statistic += difference * difference / (x + y);
  }
  const auto degrees_of_freedom = static_cast<double>(cells.size() - 1);
  const double deviate =
      (std::cbrt(statistic / degrees_of_freedom) - (1 - 2 / (9 * degrees_of_freedom))) /
      std::sqrt(2 / (9 * degrees_of_freedom));
  return 0.5 * std::erfc(deviate / std::sqrt(2.0));
}

}  // namespace starling::sim
