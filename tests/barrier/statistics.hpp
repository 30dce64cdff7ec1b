/// Compares random outcomes with their exact distribution. Each function returns the difference in
/// standard deviations; tests usually allow 5. Seeds are fixed, so a test that passes once always
/// passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

/// Returns the difference between `hits` and its mean in standard deviations, if each of `trials`
/// independent trials hits with `probability` (binomial distribution).
inline double deviations(std::uint64_t hits, std::uint64_t trials, double probability) {
  const auto n = static_cast<double>(trials);
  const double sd = std::sqrt(n * probability * (1 - probability));
  const double difference = static_cast<double>(hits) - n * probability;
  return sd > 0 ? difference / sd : (difference == 0 ? 0 : INFINITY);
}

/// Returns Pearson's chi-square of `counts` against `expected`, converted to a standard normal
/// deviate (Wilson, Hilferty, PNAS 1931). A large value means that the counts have another
/// distribution; a large negative value means that they are too close to `expected` to be random.
/// Requires: 2 counts or more, and `expected` with the same sum.
inline double agreement(std::span<const std::uint64_t> counts, std::span<const double> expected) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double difference = static_cast<double>(counts[i]) - expected[i];
    chi_square += difference * difference / expected[i];
  }
  const auto degrees_of_freedom = static_cast<double>(counts.size() - 1);
  return (std::cbrt(chi_square / degrees_of_freedom) - (1 - 2 / (9 * degrees_of_freedom))) /
         std::sqrt(2 / (9 * degrees_of_freedom));
}

/// Returns agreement() of counts whose expected values are all equal.
inline double uniformity(std::span<const std::uint64_t> counts) {
  double total = 0;
  for (const auto count : counts) total += static_cast<double>(count);
  return agreement(counts, std::vector(counts.size(), total / static_cast<double>(counts.size())));
}

}  // namespace starling
