/// Exact oracles for what is random: how far an outcome is from what theory says, in standard
/// deviations. Seeds are fixed, so a test that passes once passes always; 5 is the usual limit.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

/// How far `hits` of `trials` lies from a chance of `probability` (binomial).
inline double deviations(std::uint64_t hits, std::uint64_t trials, double probability) {
  const auto n = static_cast<double>(trials);
  const double sd = std::sqrt(n * probability * (1 - probability));
  const double off = static_cast<double>(hits) - n * probability;
  return sd > 0 ? off / sd : (off == 0 ? 0 : INFINITY);
}

/// Pearson's chi-square of counts against those expected, which add up to the same, as a normal
/// deviate (Wilson, Hilferty, PNAS 1931). Far above 0: something else; far below: too close to be
/// random. Requires: 2 cells.
inline double agreement(std::span<const std::uint64_t> counts, std::span<const double> expected) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double off = static_cast<double>(counts[i]) - expected[i];
    chi_square += off * off / expected[i];
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (std::cbrt(chi_square / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

/// The same of counts that should all be equal.
inline double uniformity(std::span<const std::uint64_t> counts) {
  double total = 0;
  for (const auto count : counts) total += static_cast<double>(count);
  return agreement(counts, std::vector(counts.size(), total / static_cast<double>(counts.size())));
}

}  // namespace starling
