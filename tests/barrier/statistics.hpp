/// Compares random outcomes with their exact distributions; returns the difference in standard
/// deviations. Tests usually allow 5. Seeds are fixed, so a test that passes once always passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

/// Returns the difference between `hits` and its mean, if each of `trials` hits with `probability`
/// (binomial).
inline double deviations(std::uint64_t hits, std::uint64_t trials, double probability) {
  const auto n = static_cast<double>(trials);
  const double sd = std::sqrt(n * probability * (1 - probability));
  const double off = static_cast<double>(hits) - n * probability;
  return sd > 0 ? off / sd : (off == 0 ? 0 : INFINITY);
}

/// Returns Pearson's chi-square of `counts` against `expected`, which have the same sum, as a
/// standard normal deviate (Wilson, Hilferty, PNAS 1931). A large value means another distribution;
/// a large negative one means that the counts are too close to be random. Requires: 2 counts or
/// more.
inline double agreement(std::span<const std::uint64_t> counts, std::span<const double> expected) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double off = static_cast<double>(counts[i]) - expected[i];
    chi_square += off * off / expected[i];
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (std::cbrt(chi_square / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

/// Returns agreement() of counts that are expected to be equal.
inline double uniformity(std::span<const std::uint64_t> counts) {
  double total = 0;
  for (const auto count : counts) total += static_cast<double>(count);
  return agreement(counts, std::vector(counts.size(), total / static_cast<double>(counts.size())));
}

}  // namespace starling
