/// Computes the exact probabilities of successive draws without replacement, by enumeration. For
/// tests with few numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace starling {

/// Returns the probability of each set of `count` numbers, if each next number is drawn with a
/// chance proportional to its weight among those that are left. `weights` has one for each number.
/// The index of a set has one bit for each of its numbers; sets of other sizes have probability 0.
inline std::vector<double> set_probabilities(std::span<const double> weights, int count) {
  const std::uint32_t sets = 1U << weights.size();
  std::vector<double> probability(sets, 0);
  probability[0] = 1;
  for (std::uint32_t set = 0; set < sets; ++set) {
    if (std::popcount(set) >= count) continue;
    double left = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      if ((set >> i) % 2 == 0) left += weights[i];
    for (std::size_t i = 0; i < weights.size(); ++i)
      if ((set >> i) % 2 == 0) probability[set | (1U << i)] += probability[set] * weights[i] / left;
  }
  for (std::uint32_t set = 0; set < sets; ++set)
    if (std::popcount(set) != count) probability[set] = 0;
  return probability;
}

/// Returns the probability that all drawn numbers are in the set `allowed`.
inline double probability_within(std::span<const double> set_probabilities, std::uint32_t allowed) {
  double sum = 0;
  for (std::uint32_t set = 0; set < set_probabilities.size(); ++set)
    if ((set & ~allowed) == 0) sum += set_probabilities[set];
  return sum;
}

/// Returns the probability that `number` is drawn.
inline double inclusion_probability(std::span<const double> set_probabilities,
                                    std::uint32_t number) {
  double sum = 0;
  for (std::uint32_t set = 0; set < set_probabilities.size(); ++set)
    if ((set >> number) % 2 == 1) sum += set_probabilities[set];
  return sum;
}

/// Counts the hits of independent trials with different probabilities.
class HitCount {
 public:
  void add(bool hit, double probability) {
    difference_ += (hit ? 1 : 0) - probability;
    variance_ += probability * (1 - probability);
  }
  /// Returns the difference of the hits to their mean in standard deviations.
  [[nodiscard]] double deviations() const {
    return variance_ > 0 ? difference_ / std::sqrt(variance_) : (difference_ == 0 ? 0 : INFINITY);
  }

 private:
  double difference_ = 0;
  double variance_ = 0;
};

}  // namespace starling
